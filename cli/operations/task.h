// A problem of any kind behind one interface, so that each verb is written once.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/operations/composition.h"
#include "cosmati/ops/compute_mode.h"
#include "cosmati/ops/epilogue.h"
#include "cosmati/ops/find.h"
#include "cosmati/ops/gemm_recipe.h"
#include "cosmati/ops/operation.h"
#include "cosmati/ops/tuning.h"
#include "src/jit/compile.h"
#include "src/plan/call_record.h"
#include "src/plan/measured_kernel.h"

namespace cosmati {
struct ConvolutionProblem;
}

namespace cosmati::cli {

// Facts about a problem, beyond its tensors, that verify and bench need.
struct Notes {
  std::string label;            // "127x65x333 nn"
  std::string transposition;    // for a matrix product: "nn"; otherwise empty
  Index terms = 1;              // values summed per element of an output
  double operations = 0;        // floating-point operations of one run
  bool transcendental = false;  // uses exp, log, tanh or a power, which libraries compute to about 64 ulps
  double exponents =
      0;  // rounding errors of exponents in ulps, which become relative errors of the exponentials
  bool linear = false;  // rounding errors are bounded by the outputs for absolute values of all inputs
  // If not null, the entire permitted error follows from the data: the largest that rounding permits, for
  // each element of each output, as f64 arrays; infinite where sums may overflow. Takes a problem of the
  // task's type and its arguments, host pointers. Task::added_errors() returns it.
  std::vector<Tensor> (*bounds)(void const* problem, void const* arguments) = nullptr;
  bool exact = false;            // small integers give results without rounding, except in the last step
  double slope = 1;              // how much that last, nonlinear step can magnify an error
  Index classes = 1;             // labels are in [0, classes)
  DataType sum = DataType::f32;  // for a matrix product: type of the sums
  bool plain = false;            // a product with the epilogue alpha*acc + beta*c, with these numbers
  ComputeMode compute = ComputeMode::exact;  // of a matrix product
  double alpha = 1, beta = 0;
  bool by_pointers = false;  // a matrix product whose batch is given by arrays of pointers
  // For matrix products: the index ("batch", "m", "n" or "k") of each dimension of a slot.
  std::map<std::string, std::vector<std::string>> axes = {};
};

struct Slot {
  std::string name;
  Role role = Role::input;
  TensorDescription description;
};

struct Choice {
  std::string kernel;
  std::size_t workspace_bytes = 0;
  std::vector<Considered> considered;
  std::optional<Multiply> multiply;  // of a GPU kernel that multiplies matrices
};

template <class Problem>
Choice choice_of(Plan<Problem> const& plan) {
  Choice choice{plan.kernel, plan.workspace_bytes, plan.considered, {}};
  if constexpr (std::is_same_v<typename RecipeOf<Problem>::type, GemmRecipe>)
    if (plan.kernel == name_of(plan.recipe.policy.main_loop)) choice.multiply = plan.recipe.policy.multiply;
  return choice;
}

// Results of cosmati find for one problem.
struct Findings {
  struct Kernel {
    Considered entry;
    double seconds = 0;
  };
  std::vector<Kernel> kernels;     // fastest first
  std::string planned;             // the kernel that a plan without measurements selects
  std::optional<TuningLine> line;  // line of the fastest, if a tuning file can hold lines for the subject
};

template <class Work>
double seconds_of(Work const& work) {
  auto const start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A prepared task. Pointers are in the order of the task's slots.
class PreparedTask {
 public:
  virtual ~PreparedTask() = default;
  // Enqueues on `stream` on a GPU; null is the default stream.
  virtual void run(std::span<void* const> pointers, void* workspace, Stream stream = nullptr) const = 0;
  // Runs synchronously and returns the seconds of the operation itself.
  virtual double timed_run(std::span<void* const> pointers, void* workspace) const {
    return seconds_of([&] { run(pointers, workspace); });
  }
  virtual Choice const& choice() const = 0;
  // The same call with a kernel that does nothing, so that only packing and checking of arguments remain.
  // Null: not supported.
  virtual std::unique_ptr<PreparedTask> without_kernel() const { return nullptr; }
};

template <class Problem>
class NoKernel final : public Kernel<Problem> {
 public:
  void enqueue(typename Problem::Arguments const&, std::byte*, Stream) const override {}
};

// The expression with |x| instead of tanh(x), sigmoid(x) and erf(x), and max instead of min; empty if it
// contains none of them.
std::optional<epilogue::Expression> unsaturated(epilogue::Expression const& expression, DataType sum);

class Task {
 public:
  using Visit = std::function<void(char const* name, Role role, TensorDescription& description)>;

  virtual ~Task() = default;
  virtual std::unique_ptr<Task> clone() const = 0;
  // Visits every tensor: those of visit_tensors, then "operand NAME" and "store NAME" of an epilogue. The
  // callback may change the descriptions.
  virtual void visit(Visit const& visit) = 0;
  virtual void make_scalars_absolute() = 0;
  // Resets the accumulator type to the one that follows from the tensors.
  virtual void forget_accumulator() {}
  // The same problem with the epilogue `acc`, or null if it has that epilogue.
  virtual std::unique_ptr<Task> accumulator_alone() const = 0;
  // The same problem without the saturating functions of its epilogue, or null if there are none.
  virtual std::unique_ptr<Task> without_saturation() const { return nullptr; }
  virtual Choice plan(Device const& device, PlanOptions const& options) const = 0;
  virtual std::unique_ptr<PreparedTask> prepare(Device const& device, PlanOptions const& options) const = 0;
  // Empty for kernels that are not compiled at run time.
  virtual std::optional<Composition> compose(Device const&, PlanOptions const&) const { return {}; }
  // The additional error of the planned kernel beyond the rounding of its sums, as an f64 array for each
  // output except stores; empty: none. Takes host pointers in the order of the slots.
  virtual std::vector<Tensor> added_errors(Device const&, PlanOptions const&, std::span<void* const>) const {
    return {};
  }
  // Measures every kernel that accepts the problem; `line` requests a line for a tuning file.
  virtual Findings find(Device const&, FindOptions const&, bool line) const = 0;
  // Null if there is only one choice.
  virtual std::unique_ptr<TuningChoices> tuning_choices(Device const&, PlanOptions const&) const {
    return nullptr;
  }
  // Null if it is not a convolution.
  virtual ConvolutionProblem const* convolution() const { return nullptr; }
  // The problem in the format of COSMATI_RECORD (docs/replay.md), without the number of runs; empty if replay
  // does not support it.
  virtual std::string recorded(Device const&, PlanOptions const&) const { return {}; }

  std::vector<Slot> slots() {
    std::vector<Slot> list;
    visit([&list](char const* name, Role role, TensorDescription& description) {
      list.push_back({name, role, description});
    });
    return list;
  }

  Notes notes;
};

template <class Problem>
concept HasEpilogue = requires(Problem problem) {
  problem.epilogue.expression;
};
template <class Problem>
concept HasWeights = requires(Problem problem) {
  problem.alpha, problem.beta, problem.a;
};

std::unique_ptr<PreparedTask> through_pointers(std::unique_ptr<PreparedTask> prepared, Device const& device,
                                               std::vector<TensorDescription> tensors);
int alignment_of_matrices(TensorDescription const& tensor);  // cli/data/pointer_arrays.h

template <class Problem>
class PreparedTaskOf final : public PreparedTask {
 public:
  PreparedTaskOf(Prepared<Problem> prepared, typename Problem::Arguments arguments,
                 std::vector<double> scalars)
      : prepared_(std::move(prepared)), arguments_(std::move(arguments)), scalars_(std::move(scalars)) {
    auto const& plan = prepared_.plan();
    choice_ = choice_of(plan);
  }

  void run(std::span<void* const> pointers, void* workspace, Stream stream) const override {
    typename Problem::Arguments arguments = arguments_;
    Problem const& problem = prepared_.plan().problem;
    std::size_t next = 0;
    Problem::visit_tensors(problem, [&](char const*, Role, TensorDescription const&, auto member) {
      arguments.*member = pointers[next++];
    });
    if constexpr (HasEpilogue<Problem>) {
      std::size_t const operands = problem.epilogue.operands.size();
      std::vector<void const*> const inputs(pointers.begin() + static_cast<std::ptrdiff_t>(next),
                                            pointers.begin() + static_cast<std::ptrdiff_t>(next + operands));
      arguments.operands = inputs;
      arguments.scalars = scalars_;
      arguments.stores = pointers.subspan(next + operands);
      prepared_.run(arguments, workspace, stream);
    } else {
      prepared_.run(arguments, workspace, stream);
    }
  }
  Choice const& choice() const override { return choice_; }
  std::unique_ptr<PreparedTask> without_kernel() const override {
    return std::make_unique<PreparedTaskOf>(
        Prepared<Problem>(prepared_.plan(), std::make_unique<NoKernel<Problem>>()), arguments_, scalars_);
  }

 private:
  Prepared<Problem> prepared_;
  typename Problem::Arguments arguments_;
  std::vector<double> scalars_;
  Choice choice_;
};

// `arguments` are non-tensor arguments (rate, step); `scalars` belong to the epilogue.
template <class Problem>
class TaskOf final : public Task {
 public:
  TaskOf(Problem problem, typename Problem::Arguments arguments, std::vector<double> scalars)
      : problem_(std::move(problem)), arguments_(std::move(arguments)), scalars_(std::move(scalars)) {}

  std::unique_ptr<Task> clone() const override { return std::make_unique<TaskOf>(*this); }

  void visit(Visit const& visit) override {
    Problem::visit_tensors(problem_, [&](char const* name, Role role, TensorDescription& description, auto) {
      visit(name, role, description);
    });
    if constexpr (HasEpilogue<Problem>) {
      auto const& expression = problem_.epilogue.expression;
      for (std::size_t i = 0; i < expression.operands().size(); ++i)
        visit(("operand " + expression.operands()[i].name).c_str(), Role::input,
              problem_.epilogue.operands[i]);
      for (std::size_t i = 0; i < expression.stores().size(); ++i)
        visit(("store " + expression.stores()[i].name).c_str(), Role::output, problem_.epilogue.stores[i]);
    }
  }

  void make_scalars_absolute() override {
    for (double& scalar : scalars_) scalar = scalar < 0 ? -scalar : scalar;
    if constexpr (HasWeights<Problem>) {
      problem_.alpha = problem_.alpha < 0 ? -problem_.alpha : problem_.alpha;
      problem_.beta = problem_.beta < 0 ? -problem_.beta : problem_.beta;
    }
  }

  void forget_accumulator() override {
    if constexpr (requires { problem_.accumulator.reset(); }) problem_.accumulator.reset();
    if constexpr (requires { problem_.compute; }) problem_.compute = ComputeMode::exact;
  }

  std::unique_ptr<Task> accumulator_alone() const override {
    if constexpr (HasEpilogue<Problem>) {
      if (problem_.epilogue.expression == epilogue::Expression()) return nullptr;
      auto alone = std::make_unique<TaskOf>(*this);
      alone->problem_.epilogue = {};
      alone->scalars_.clear();
      if constexpr (requires { alone->problem_.c; }) alone->problem_.c = {};
      return alone;
    }
    return nullptr;
  }

  std::unique_ptr<Task> without_saturation() const override {
    if constexpr (HasEpilogue<Problem>)
      if (auto const expression = unsaturated(problem_.epilogue.expression, notes.sum)) {
        auto other = std::make_unique<TaskOf>(*this);
        other->problem_.epilogue.expression = *expression;
        return other;
      }
    return nullptr;
  }

  Choice plan(Device const& device, PlanOptions const& options) const override {
    return choice_of(make_plan(promised(), device, options));
  }

  std::unique_ptr<PreparedTask> prepare(Device const& device, PlanOptions const& options) const override {
    auto prepared = std::make_unique<PreparedTaskOf<Problem>>(
        cosmati::prepare(make_plan(promised(), device, options)), arguments_, scalars_);
    if constexpr (TakesPointers<Problem>)
      if (problem_.by_pointers) {
        std::vector<TensorDescription> tensors;
        Problem::visit_tensors(problem_, [&](char const*, Role, TensorDescription const& tensor, auto) {
          tensors.push_back(tensor);
        });
        return through_pointers(std::move(prepared), device, std::move(tensors));
      }
    return prepared;
  }

  std::optional<Composition> compose(Device const& device, PlanOptions const& options) const override {
    return composition_of(make_plan(promised(), device, options));
  }

  std::vector<Tensor> added_errors(Device const& device, PlanOptions const& options,
                                   std::span<void* const> pointers) const override {
    typename Problem::Arguments arguments = arguments_;
    std::size_t next = 0;
    Problem::visit_tensors(problem_, [&](char const*, Role, TensorDescription const&, auto member) {
      arguments.*member = pointers[next++];
    });
    if (notes.bounds != nullptr) return notes.bounds(&problem_, &arguments);
    return added_errors_of(make_plan(promised(), device, options), arguments);
  }

  std::unique_ptr<TuningChoices> tuning_choices(Device const& device,
                                                PlanOptions const& options) const override {
    return tuning_choices_of(problem_, device, options);
  }

  Findings find(Device const& device, FindOptions const& options, bool line) const override {
    Problem const problem = promised();
    auto const found = cosmati::find(problem, device, options);
    Findings findings;
    findings.planned = make_plan(problem, device, options.plan).kernel;
    for (auto const& one : found) findings.kernels.push_back({one.prepared.plan().chosen(), one.seconds});
    if constexpr (plan::HasMeasuredClass<Problem>)
      if (line) findings.line = tuning_line(found, options.plan);
    return findings;
  }

  ConvolutionProblem const* convolution() const override {
    if constexpr (std::is_same_v<Problem, ConvolutionProblem>) return &problem_;
    return nullptr;
  }

  std::string recorded(Device const& device, PlanOptions const& options) const override {
    return plan::recorded_call(make_plan(promised(), device, options));
  }

 private:
  // With batches by pointers, the promised alignment is the one that holds for all matrices.
  Problem promised() const {
    Problem problem = problem_;
    if constexpr (TakesPointers<Problem>)
      if (problem.by_pointers)
        Problem::visit_tensors(problem, [](char const*, Role, TensorDescription& tensor, auto) {
          tensor.alignment = alignment_of_matrices(tensor);
        });
    return problem;
  }

  Problem problem_;
  typename Problem::Arguments arguments_;
  std::vector<double> scalars_;
};

template <class Problem>
std::unique_ptr<Task> make_task(Problem problem, Notes const& notes,
                                typename Problem::Arguments arguments = {},
                                std::vector<double> scalars = {}) {
  validate(problem);
  auto task = std::make_unique<TaskOf<Problem>>(std::move(problem), std::move(arguments), std::move(scalars));
  task->notes = notes;
  return task;
}

template <class Problem>
std::vector<std::string> kernel_names(Backend backend) {
  std::vector<std::string> names;
  for (auto const& candidate : candidates<Problem>(backend)) names.emplace_back(candidate.name);
  return names;
}

}  // namespace cosmati::cli
