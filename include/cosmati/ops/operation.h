// problem -> plan -> prepared -> run: the four steps that every operation takes.
//
//   GemmProblem problem = ...;                       what to compute: plain data, no pointers
//   auto plan = make_plan(problem, device);          how, and why not otherwise: pure, printable
//   auto prepared = prepare(plan);                   compiles, loads, creates primitives: all slow work
//   prepared.run({.a = a, .b = b, .d = d}, workspace);   enqueues; allocates nothing; thread-safe
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
#include "cosmati/ops/policy_request.h"
#include "cosmati/ops/recipe_terms.h"
#include "cosmati/ops/tensor.h"

namespace cosmati {

enum class Role : unsigned char { input, output, in_out };

class TuningTable;  // cosmati/ops/tuning.h

// Restrictions on the choice of make_plan.
struct PlanOptions {
  std::string kernel = {};                                   // only the candidate of this name; empty: any
  std::size_t max_workspace = ~static_cast<std::size_t>(0);  // bytes
  PolicyRequest policy =
      {};  // for kernels with policies, such as "large,stages=5"; empty: chosen by the planner
  // Rejects candidates whose Considered::expected_error is larger. If not given, algorithms by transforms are
  // rejected above default_max_error, unless `kernel` names them.
  std::optional<double> max_error = {};
  static constexpr double default_max_error = 1e-4;
  bool deterministic = false;  // reject candidates whose results may differ from run to run
  // Rejects candidates that do not guarantee that the result of a row, of a matrix of a batch, or of an image
  // is bit-identical for every batch size (docs/decisions/0028-batch-invariance.md). Measured choices are
  // ignored.
  bool batch_invariant = false;
  // Measured choices, which take precedence over predictions; null: none. Those that the library contains
  // follow, if built_in_tuning.
  std::shared_ptr<TuningTable const> tuning = {};
  bool built_in_tuning = true;
};

// One line of `cosmati explain`.
struct Considered {
  std::string kernel;
  std::string
      refusal;  // empty: it can run this problem; otherwise the requirement, the value and valid values
  std::size_t workspace_bytes = 0;
  double predicted_seconds = 0;  // 0: this kernel has no prediction
  std::string recipe = {};       // parameters: policy, splits, ...; empty: nothing to choose
  // Expected relative rounding error: the standard deviation of an output's error divided by that of the
  // outputs, for random inputs of mean 0, before rounding to the output type. 0 if not stated.
  double expected_error = 0;
  std::string note = {};  // the line of a tuning file that the recipe came from, or why it was ignored
  std::vector<RecipeTerm> terms = {};  // used in the recipe; empty for a refusal
};

// Returns the entry of the candidate `kernel`. Throws Error (bad_request) if there is none.
Considered const& entry_of(std::vector<Considered> const& considered, std::string const& kernel);

// The type of a plan's recipe; specialized for problems whose kernels are generated.
template <class Problem>
struct RecipeOf {
  struct type {
    friend bool operator==(type const&, type const&) = default;
  };
};

// How a problem is computed: the result of make_plan. Immutable.
template <class Problem>
struct Plan {
  Problem problem;
  Device device;
  std::string kernel;               // the chosen candidate
  std::size_t workspace_bytes = 0;  // required by run(): 64-byte aligned, on a GPU 256-byte aligned
  std::vector<Considered> considered;
  typename RecipeOf<Problem>::type recipe = {};
  bool batch_invariant = false;  // PlanOptions::batch_invariant

  // The entry of the chosen candidate.
  Considered const& chosen() const { return entry_of(considered, kernel); }
};

// A kernel prepared for one problem. Immutable: several threads may call enqueue() concurrently, each with
// its own workspace.
template <class Problem>
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void enqueue(typename Problem::Arguments const& arguments, std::byte* workspace,
                       Stream stream) const = 0;
};

// A synchronous kernel, which returns when the result is complete and ignores the stream.
template <class Problem>
class HostKernel : public Kernel<Problem> {
 public:
  virtual void run(typename Problem::Arguments const& arguments, std::byte* workspace) const = 0;
  void enqueue(typename Problem::Arguments const& arguments, std::byte* workspace, Stream) const final {
    run(arguments, workspace);
  }
};

// What a candidate with parameters offers for a problem.
template <class Problem>
struct Offer {
  std::string refusal;  // empty: it can run the problem this way
  std::size_t workspace_bytes = 0;
  double predicted_seconds = 0;
  typename RecipeOf<Problem>::type recipe = {};
  std::string text = {};      // the recipe in readable form
  std::string note = {};      // Considered::note
  double expected_error = 0;  // Considered::expected_error
  bool measured = false;  // the recipe came from PlanOptions::tuning and takes precedence over predictions
};

// One way to compute a problem. candidates(Backend) is ordered by preference, but among candidates that
// predict their time the fastest wins, and measured choices take precedence over predictions. The last
// candidate has no requirements, so every valid problem runs.
template <class Problem>
struct Candidate {
  struct Requirement {
    // Empty if satisfied; otherwise the violated requirement, the value, and valid values.
    std::string (*violation)(Problem const&, Device const&);
    // The requirement concerns speed only, and is ignored if the candidate is requested by name.
    bool advice = false;
  };
  char const* name;
  std::vector<Requirement> requirements;
  std::size_t (*workspace_bytes)(Problem const&, Device const&);
  std::unique_ptr<Kernel<Problem>> (*prepare)(Plan<Problem> const&);
  // Replaces workspace_bytes for kernels with parameters.
  Offer<Problem> (*offer)(Problem const&, Device const&, PlanOptions const&) = nullptr;
  bool takes_pointers = false;   // also accepts by_pointers problems
  bool deterministic = true;     // results are bit-identical in every run
  bool batch_invariant = false;  // supports PlanOptions::batch_invariant, which its offer respects
};

// The candidates of a backend for this kind of problem; specialized in src/candidates/.
template <class Problem>
std::vector<Candidate<Problem>> const& candidates(Backend backend);

// Chooses a candidate that accepts the problem, as described at Candidate. Throws Error(bad_request) if the
// problem is invalid, or if options.kernel names a candidate that rejects it or does not exist. Pure: no
// device calls, no environment variables.
template <class Problem>
Plan<Problem> make_plan(Problem const& problem, Device const& device, PlanOptions const& options = {});

// Problems whose tensors may be arrays of pointers, one per matrix of a batch.
template <class Problem>
concept TakesPointers = requires(Problem problem) {
  problem.by_pointers;
};
// The description that the pointer to such an array must satisfy.
TensorDescription array_of_pointers(TensorDescription const& description);

// Checks an argument of a run on every backend: it must be present and aligned to its type and to the
// alignment of the description.
void check_argument(char const* name, TensorDescription const& description, void const* pointer);
void check_workspace(std::size_t bytes, void const* workspace, Backend backend);

// Throws Error(bad_request) if an operand, scalar or store of the expression is missing.
struct Epilogue;
void check_epilogue_arguments(Epilogue const& epilogue, std::span<void const* const> operands,
                              std::span<double const> scalars, std::span<void* const> stores);

// Checks the pointers of a host array, one per matrix of `description`.
void check_pointers(char const* name, TensorDescription const& description, void const* array);

// Checks the numbers in the arguments; overloaded for problems that do not accept all values.
template <class Problem>
void check_numbers(Problem const&, typename Problem::Arguments const&) {}

// Checks the arguments of run() against the problem; overloaded for problems that are not lists of tensors.
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

// An executable plan. Cheap to copy; copies share the kernel.
template <class Problem>
class Prepared {
 public:
  using Arguments = typename Problem::Arguments;
  Prepared() = default;
  Prepared(Plan<Problem> plan, std::unique_ptr<Kernel<Problem>> kernel)
      : plan_(std::make_shared<Plan<Problem> const>(std::move(plan))), kernel_(std::move(kernel)) {}

  Plan<Problem> const& plan() const { return *plan_; }
  std::size_t workspace_bytes() const { return plan_->workspace_bytes; }

  // Enqueues the computation on `stream` and returns; host backends return when the result is complete. On
  // the backend cuda, all pointers of `arguments` and the workspace are device pointers. `workspace` has at
  // least workspace_bytes() bytes, aligned to 64 bytes (cuda: 256); its initial content does not matter, the
  // caller owns it, and concurrent runs must not share it.
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

// Creates the chosen kernel, including all slow work such as compiling and loading.
template <class Problem>
Prepared<Problem> prepare(Plan<Problem> const& plan);

// Returns one line per candidate with its verdict.
std::string explain(std::vector<Considered> const& considered, std::string const& chosen);

}  // namespace cosmati
