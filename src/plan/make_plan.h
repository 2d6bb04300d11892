// The bodies of make_plan and prepare; instantiated once for each kind of problem, next to its candidates.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cosmati/ops/operation.h"
#include "src/plan/buffers.h"
#include "src/plan/call_record.h"
#include "src/plan/measured_kernel.h"
#include "src/plan/stated_error.h"

namespace cosmati {

// "expected relative error 2e-3 exceeds the limit ...".
std::string error_sentence(double expected, double limit);

// Returns the candidate's offer for the problem, or its first violated requirement as a refusal.
template <class Problem>
Offer<Problem> offer_of(Candidate<Problem> const& candidate, Problem const& problem, Device const& device,
                        PlanOptions const& options) {
  Offer<Problem> offer;
  if constexpr (TakesPointers<Problem>)
    if (problem.by_pointers && !candidate.takes_pointers) {
      offer.refusal = "does not support arrays of pointers";
      return offer;
    }
  if (options.batch_invariant && !candidate.batch_invariant) {
    offer.refusal =
        "is not batch-invariant: its bits may depend on the number of rows, matrices or images; only "
        "batch-invariant kernels were requested";
    return offer;
  }
  for (auto const& requirement : candidate.requirements) {
    if (requirement.advice && options.kernel == candidate.name) continue;
    offer.refusal = requirement.violation(problem, device);
    if (!offer.refusal.empty()) return offer;
  }
  if (candidate.offer != nullptr) {
    offer = candidate.offer(problem, device, options);
  } else {
    offer.refusal = options.policy.refusal();
    if (candidate.workspace_bytes) offer.workspace_bytes = candidate.workspace_bytes(problem, device);
  }
  if (offer.refusal.empty())
    offer.refusal = plan::workspace_violation(offer.workspace_bytes, options.max_workspace);
  if (offer.refusal.empty() && offer.expected_error == 0)
    offer.expected_error = plan::stated_error(problem, device, candidate.name, offer.recipe);
  if (offer.refusal.empty() && options.max_error && offer.expected_error > *options.max_error)
    offer.refusal = error_sentence(offer.expected_error, *options.max_error);
  if (offer.refusal.empty() && options.deterministic && !candidate.deterministic)
    offer.refusal =
        "is not deterministic: its bits may differ from run to run; only deterministic kernels were "
        "requested";
  return offer;
}

// Throws Error(bad_request) if an output of the problem is a sum over the batch, as described by
// Problem::sums_over_batch().
[[noreturn]] void throw_sum_over_batch(char const* what);
template <class Problem>
void check_batch_invariance(Problem const& problem) {
  if constexpr (requires { problem.sums_over_batch(); })
    if (char const* const what = problem.sums_over_batch()) throw_sum_over_batch(what);
}

[[noreturn]] void throw_no_candidate(std::vector<Considered> const& considered, std::string const& asked_for,
                                     Backend backend);

template <class Problem>
Plan<Problem> make_plan(Problem const& problem, Device const& device, PlanOptions const& options) {
  validate(problem);
  if (options.batch_invariant) check_batch_invariance(problem);
  Plan<Problem> plan;
  plan.problem = problem;
  plan.device = device;
  plan.batch_invariant = options.batch_invariant;
  double predicted = 0;
  bool measured = false;
  TuningLine const* const line = plan::measured_line(problem, device, options);
  for (auto const& candidate : candidates<Problem>(device.backend)) {
    Offer<Problem> offer = offer_of(candidate, problem, device, options);
    if (line != nullptr && line->kernel == candidate.name && !offer.measured) {
      offer.note = plan::measured_note(*line, offer.refusal, offer.text);
      offer.measured = offer.refusal.empty();
    }
    bool const wanted = options.kernel.empty() || options.kernel == candidate.name;
    bool const faster = offer.measured != measured
                            ? offer.measured
                            : offer.predicted_seconds > 0 && offer.predicted_seconds < predicted;
    if (wanted && offer.refusal.empty() && (plan.kernel.empty() || faster)) {
      plan.kernel = candidate.name;
      plan.workspace_bytes = offer.workspace_bytes;
      plan.recipe = offer.recipe;
      predicted = offer.predicted_seconds;
      measured = offer.measured;
    }
    std::vector<RecipeTerm> terms;
    if (offer.refusal.empty()) terms = terms_of(offer.recipe);
    plan.considered.push_back({candidate.name, std::move(offer.refusal), offer.workspace_bytes,
                               offer.predicted_seconds, std::move(offer.text), offer.expected_error,
                               std::move(offer.note), std::move(terms)});
  }
  if (plan.kernel.empty()) throw_no_candidate(plan.considered, options.kernel, device.backend);
  return plan;
}

// Counts the runs of a kernel for COSMATI_RECORD.
template <class Problem>
class CountedKernel final : public Kernel<Problem> {
 public:
  CountedKernel(std::unique_ptr<Kernel<Problem>> kernel, std::atomic<long long>& runs)
      : kernel_(std::move(kernel)), runs_(runs) {}
  void enqueue(typename Problem::Arguments const& arguments, std::byte* workspace,
               Stream stream) const override {
    runs_.fetch_add(1, std::memory_order_relaxed);
    kernel_->enqueue(arguments, workspace, stream);
  }

 private:
  std::unique_ptr<Kernel<Problem>> kernel_;
  std::atomic<long long>& runs_;
};

template <class Problem>
Prepared<Problem> prepare(Plan<Problem> const& plan) {
  plan::Preparation const preparation;
  for (auto const& candidate : candidates<Problem>(plan.device.backend)) {
    if (candidate.name != plan.kernel) continue;
    auto kernel = candidate.prepare(plan);
    // The reference is excluded, since others are compared with it.
    if (preparation.is_recorded() && plan.device.backend != Backend::reference)
      kernel = std::make_unique<CountedKernel<Problem>>(std::move(kernel),
                                                        plan::runs_of(plan::recorded_call(plan)));
    return Prepared<Problem>(plan, std::move(kernel));
  }
  throw Error(ErrorCode::bad_request, "the plan names the kernel '" + plan.kernel + "', which the backend " +
                                          name_of(plan.device.backend) + " does not have");
}

// A kernel that is a function of problem and arguments and needs no preparation.
template <class Problem, void (*function)(Problem const&, typename Problem::Arguments const&)>
class FunctionKernel final : public HostKernel<Problem> {
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
