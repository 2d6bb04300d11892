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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cosmati/ops/device.h"
#include "cosmati/ops/error.h"
#include "cosmati/ops/tensor.h"

namespace cosmati {

enum class Role : unsigned char { input, output, in_out };

// What make_plan may choose from.
struct PlanOptions {
  std::string kernel = {};                                   // only the candidate of this name; empty: any
  std::size_t max_workspace = ~static_cast<std::size_t>(0);  // bytes
};

// One line of `cosmati explain`.
struct Considered {
  std::string kernel;
  std::string refusal;  // empty: it could run this problem; else requirement, value and what would be legal
  std::size_t workspace_bytes = 0;
};

// How a problem will be computed. Immutable once made.
template <class Problem>
struct Plan {
  Problem problem;
  Device device;
  std::string kernel;               // the chosen candidate
  std::size_t workspace_bytes = 0;  // what run() must be given, 64-byte aligned
  std::vector<Considered> considered;
};

// A kernel made ready for one problem. Immutable: run() may be called by many threads at once, each with its
// own workspace.
template <class Problem>
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(typename Problem::Arguments const& arguments, std::byte* workspace) const = 0;
};

// One way to compute a problem. The order of candidates(Backend) is the order of preference; the last has no
// requirements, so every valid problem runs.
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
};

// The candidates of a backend for this kind of problem; specialised in src/plan/.
template <class Problem>
std::vector<Candidate<Problem>> const& candidates(Backend backend);

// Chooses the first candidate that accepts the problem. Throws Error if the problem is malformed, or if
// options.kernel names a candidate that refuses or does not exist. Pure: no device call, no environment.
template <class Problem>
Plan<Problem> make_plan(Problem const& problem, Device const& device, PlanOptions const& options = {});

// The arguments of a run are checked against the description: present, and aligned to their type.
void check_argument(char const* name, TensorDescription const& description, void const* pointer);
void check_workspace(std::size_t bytes, void const* workspace);

// Throws Error(bad_request) if an operand, scalar or store that the expression names was not given.
struct Epilogue;
void check_epilogue_arguments(Epilogue const& epilogue, std::span<void const* const> operands,
                              std::span<double const> scalars, std::span<void* const> stores);

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

  // Host backends return when the result is there. `workspace` is of at least workspace_bytes(), 64-byte
  // aligned, arrives dirty, belongs to the caller and is not shared with a concurrent run.
  void run(Arguments const& arguments, void* workspace = nullptr) const {
    Problem::visit_tensors(plan_->problem,
                           [&](char const* name, Role, TensorDescription const& description, auto member) {
                             check_argument(name, description, arguments.*member);
                           });
    if constexpr (requires { arguments.scalars; })
      check_epilogue_arguments(plan_->problem.epilogue, arguments.operands, arguments.scalars,
                               arguments.stores);
    check_workspace(plan_->workspace_bytes, workspace);
    kernel_->run(arguments, static_cast<std::byte*>(workspace));
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
