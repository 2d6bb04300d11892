// The bodies of make_plan and prepare; instantiated once for each kind of problem, next to its candidates.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cosmati/ops/operation.h"

namespace cosmati {

// The first violated requirement of `candidate`, or that its workspace is too large; empty if it can run the
// problem.
template <class Problem>
std::string refusal_of(Candidate<Problem> const& candidate, Problem const& problem, Device const& device,
                       PlanOptions const& options, std::size_t& workspace_bytes) {
  for (auto const& requirement : candidate.requirements) {
    if (requirement.advice && options.kernel == candidate.name) continue;
    std::string violation = requirement.violation(problem, device);
    if (!violation.empty()) return violation;
  }
  workspace_bytes = candidate.workspace_bytes ? candidate.workspace_bytes(problem, device) : 0;
  if (workspace_bytes <= options.max_workspace) return {};
  return "needs a workspace of " + std::to_string(workspace_bytes) + " bytes; the limit is " +
         std::to_string(options.max_workspace);
}

[[noreturn]] void throw_no_candidate(std::vector<Considered> const& considered, std::string const& asked_for,
                                     Backend backend);

template <class Problem>
Plan<Problem> make_plan(Problem const& problem, Device const& device, PlanOptions const& options) {
  validate(problem);
  Plan<Problem> plan{problem, device, {}, 0, {}};
  for (auto const& candidate : candidates<Problem>(device.backend)) {
    Considered entry{candidate.name, {}, 0};
    entry.refusal = refusal_of(candidate, problem, device, options, entry.workspace_bytes);
    bool const wanted = options.kernel.empty() || options.kernel == candidate.name;
    if (plan.kernel.empty() && wanted && entry.refusal.empty()) {
      plan.kernel = candidate.name;
      plan.workspace_bytes = entry.workspace_bytes;
    }
    plan.considered.push_back(std::move(entry));
  }
  if (plan.kernel.empty()) throw_no_candidate(plan.considered, options.kernel, device.backend);
  return plan;
}

template <class Problem>
Prepared<Problem> prepare(Plan<Problem> const& plan) {
  for (auto const& candidate : candidates<Problem>(plan.device.backend))
    if (candidate.name == plan.kernel) return Prepared<Problem>(plan, candidate.prepare(plan));
  throw Error(ErrorCode::bad_request, "the plan names the kernel '" + plan.kernel + "', which the backend " +
                                          name_of(plan.device.backend) + " does not have");
}

// A kernel that is one function of problem and arguments: what needs no preparation.
template <class Problem, void (*function)(Problem const&, typename Problem::Arguments const&)>
class FunctionKernel final : public Kernel<Problem> {
 public:
  explicit FunctionKernel(Problem const& problem) : problem_(problem) {}
  void run(typename Problem::Arguments const& arguments, std::byte*) const override {
    function(problem_, arguments);
  }

 private:
  Problem problem_;
};

template <class Problem, void (*function)(Problem const&, typename Problem::Arguments const&)>
Candidate<Problem> function_candidate(char const* name) {
  return {name, {}, nullptr, [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
            return std::make_unique<FunctionKernel<Problem, function>>(plan.problem);
          }};
}

}  // namespace cosmati
