// problem -> plan -> prepared -> run: the four steps that every operation takes.
//
//   GemmProblem problem = ...;                       what is asked: plain data, no pointers
//   auto plan = make_plan(problem, device);          how, and why not otherwise: pure, printable
//   auto prepared = prepare(plan);                   compiled, loaded, primitives created: all that is slow
//   prepared.run({.a = a, .b = b, .d = d}, workspace);   enqueued; allocates nothing, may be called from many
//   threads
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cosmati/ops/device.h"
#include "cosmati/ops/error.h"
#include "cosmati/ops/tensor.h"

namespace cosmati {

enum class Role : unsigned char { input, output, in_out };

class TuningTable;  // cosmati/ops/tuning.h

// What make_plan may choose from.
struct PlanOptions {
  std::string kernel = {};                                   // only the candidate of this name; empty: any
  std::size_t max_workspace = ~static_cast<std::size_t>(0);  // bytes
  std::string policy =
      {};  // of kernels that have one: a name, field=value,..., or both; empty: the planner's
  // Candidates that state a larger Considered::expected_error are refused. Not given: those that compute by
  // transforms are refused above default_max_error, unless `kernel` names them.
  std::optional<double> max_error = {};
  static constexpr double default_max_error = 1e-4;
  bool deterministic = false;  // refuse candidates whose bits may differ from run to run
  // The bits of a row of a product, of a matrix of a batch, of an image do not depend on how many others
  // there are: refuse candidates that do not promise so (docs/decisions/0028-batch-invariance.md). What was
  // measured is not gone by.
  bool batch_invariant = false;
  // Measured choices, which go before predictions where there is one for the problem; null: none.
  std::shared_ptr<TuningTable const> tuning = {};
};

// One line of `cosmati explain`.
struct Considered {
  std::string kernel;
  std::string refusal;  // empty: it could run this problem; else requirement, value and what would be legal
  std::size_t workspace_bytes = 0;
  double predicted_seconds = 0;  // 0: this kernel has no prediction
  std::string recipe = {};       // how it would run: policy, splits, ...; empty: nothing to choose
  // Of rounding: the standard deviation of an output's error over that of the outputs, for random inputs of
  // mean 0, before the output is rounded to its own type. 0: not stated.
  double expected_error = 0;
  std::string note = {};  // which line of a tuning file the recipe came from, or why that was ignored
};

// What a plan says beyond the kernel's name; specialised for problems whose kernels are composed.
template <class Problem>
struct RecipeOf {
  struct type {
    friend bool operator==(type const&, type const&) = default;
  };
};

// How a problem will be computed. Immutable once made.
template <class Problem>
struct Plan {
  Problem problem;
  Device device;
  std::string kernel;               // the chosen candidate
  std::size_t workspace_bytes = 0;  // what run() must be given: 64-byte aligned, on a GPU 256-byte aligned
  std::vector<Considered> considered;
  typename RecipeOf<Problem>::type recipe = {};
  bool batch_invariant = false;  // PlanOptions::batch_invariant
};

// A kernel made ready for one problem. Immutable: enqueue() may be called by many threads at once, each with
// its own workspace.
template <class Problem>
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void enqueue(typename Problem::Arguments const& arguments, std::byte* workspace,
                       Stream stream) const = 0;
};

// A kernel that has no use for a stream: it returns when the result is there.
template <class Problem>
class HostKernel : public Kernel<Problem> {
 public:
  virtual void run(typename Problem::Arguments const& arguments, std::byte* workspace) const = 0;
  void enqueue(typename Problem::Arguments const& arguments, std::byte* workspace, Stream) const final {
    run(arguments, workspace);
  }
};

// What a candidate that has choices of its own makes of a problem.
template <class Problem>
struct Offer {
  std::string refusal;  // empty: it could run the problem so
  std::size_t workspace_bytes = 0;
  double predicted_seconds = 0;
  typename RecipeOf<Problem>::type recipe = {};
  std::string text = {};      // the recipe, for people
  std::string note = {};      // Considered::note
  double expected_error = 0;  // Considered::expected_error
  bool measured = false;  // the recipe came from PlanOptions::tuning: chosen before all that are predicted
};

// One way to compute a problem. The order of candidates(Backend) is the order of preference, but among those
// that predict their time the least prediction wins, and what was measured goes before what is predicted; the
// last has no requirements, so every valid problem runs.
template <class Problem>
struct Candidate {
  struct Requirement {
    // Empty if satisfied; else what is required, the value that is in the way, and what would be legal.
    std::string (*violation)(Problem const&, Device const&);
    // A matter of speed: it does not bind who asks for this candidate by name.
    bool advice = false;
  };
  char const* name;
  std::vector<Requirement> requirements;
  std::size_t (*workspace_bytes)(Problem const&, Device const&);
  std::unique_ptr<Kernel<Problem>> (*prepare)(Plan<Problem> const&);
  // In the place of workspace_bytes, for kernels that can be made in more than one way.
  Offer<Problem> (*offer)(Problem const&, Device const&, PlanOptions const&) = nullptr;
  bool takes_pointers = false;   // problems given by_pointers as well
  bool deterministic = true;     // the same bits from the same inputs, in every run
  bool batch_invariant = false;  // may be asked for PlanOptions::batch_invariant; its offer heeds that
};

// The candidates of a backend for this kind of problem; specialised in src/plan/.
template <class Problem>
std::vector<Candidate<Problem>> const& candidates(Backend backend);

// Chooses the first candidate that accepts the problem. Throws Error if the problem is malformed, or if
// options.kernel names a candidate that refuses or does not exist. Pure: no device call, no environment.
template <class Problem>
Plan<Problem> make_plan(Problem const& problem, Device const& device, PlanOptions const& options = {});

// Problems whose tensors may be given as arrays of pointers, one for each matrix of a batch.
template <class Problem>
concept TakesPointers = requires(Problem problem) {
  problem.by_pointers;
};
// What the pointer to such an array must satisfy.
TensorDescription array_of_pointers(TensorDescription const& description);

// The arguments of a run are checked against the description, on every backend: present, and aligned to their
// type and to what the description promises.
void check_argument(char const* name, TensorDescription const& description, void const* pointer);
void check_workspace(std::size_t bytes, void const* workspace, Backend backend);

// Throws Error(bad_request) if an operand, scalar or store that the expression names was not given.
struct Epilogue;
void check_epilogue_arguments(Epilogue const& epilogue, std::span<void const* const> operands,
                              std::span<double const> scalars, std::span<void* const> stores);

// The same of the pointers in a host's array of them: one for each matrix of `description`.
void check_pointers(char const* name, TensorDescription const& description, void const* array);

// Of the numbers in the arguments; overloaded for problems that do not take all of them.
template <class Problem>
void check_numbers(Problem const&, typename Problem::Arguments const&) {}

// What run() is given, against the problem; overloaded for problems that are no list of tensors.
template <class Problem>
void check_arguments(Problem const& problem, typename Problem::Arguments const& arguments, Backend backend) {
  bool by_pointers = false;
  if constexpr (TakesPointers<Problem>) by_pointers = problem.by_pointers;
  Problem::visit_tensors(
      problem, [&](char const* name, Role, TensorDescription const& description, auto member) {
        check_argument(name, by_pointers ? array_of_pointers(description) : description, arguments.*member);
        if (by_pointers && backend != Backend::cuda) check_pointers(name, description, arguments.*member);
      });
  check_numbers(problem, arguments);
  if constexpr (requires { arguments.scalars; })
    check_epilogue_arguments(problem.epilogue, arguments.operands, arguments.scalars, arguments.stores);
}

// A plan made ready to run. Cheap to copy; copies share the kernel.
template <class Problem>
class Prepared {
 public:
  using Arguments = typename Problem::Arguments;
  Prepared() = default;
  Prepared(Plan<Problem> plan, std::unique_ptr<Kernel<Problem>> kernel)
      : plan_(std::make_shared<Plan<Problem> const>(std::move(plan))), kernel_(std::move(kernel)) {}

  Plan<Problem> const& plan() const { return *plan_; }
  std::size_t workspace_bytes() const { return plan_->workspace_bytes; }

  // Enqueues on `stream` and returns; host backends return when the result is there. On the cuda backend
  // every pointer of `arguments` and the workspace are device memory. `workspace` is of at least
  // workspace_bytes(), aligned to 64 bytes (cuda: 256), arrives dirty, belongs to the caller and is not
  // shared with a concurrent run.
  void run(Arguments const& arguments, void* workspace = nullptr, Stream stream = nullptr) const {
    Backend const backend = plan_->device.backend;
    check_arguments(plan_->problem, arguments, backend);
    check_workspace(plan_->workspace_bytes, workspace, backend);
    kernel_->enqueue(arguments, static_cast<std::byte*>(workspace), stream);
  }

 private:
  std::shared_ptr<Plan<Problem> const> plan_;
  std::shared_ptr<Kernel<Problem> const> kernel_;
};

// Creates the chosen kernel: everything that is slow happens here.
template <class Problem>
Prepared<Problem> prepare(Plan<Problem> const& plan);

// Every candidate and its verdict, a line each.
std::string explain(std::vector<Considered> const& considered, std::string const& chosen);

}  // namespace cosmati
