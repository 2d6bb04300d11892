// Bias gradients, computed by a reduction on the same backend.
#include "src/plan/conv/bias.h"

#include <utility>

#include "cosmati/ops/elementwise.h"
#include "src/plan/buffers.h"
#include "src/plan/primitive/lower.h"

namespace cosmati::plan {
namespace {

ReduceProblem reduction_of(ConvolutionProblem const& problem) {
  ReduceProblem sum{ReduceOperation::sum, problem.y, {}};
  sum.y = problem.db;
  sum.y.layout = {{1, problem.db.extent(0), 1, 1}, {0, problem.db.layout.stride[0], 0, 0}};
  return sum;
}

PlanOptions within(std::size_t workspace_bytes) {
  PlanOptions options;
  options.max_workspace = workspace_bytes;
  return options;
}

class WithBias final : public Kernel<ConvolutionProblem> {
 public:
  WithBias(Plan<ConvolutionProblem> const& plan, std::unique_ptr<Kernel<ConvolutionProblem>> product)
      : product_(std::move(product)),
        sum_(prepare(bias_plan(plan))),
        before_(plan.workspace_bytes - plan.recipe.bias_bytes) {}

  void enqueue(ConvolutionProblem::Arguments const& arguments, std::byte* workspace,
               Stream stream) const override {
    if (product_) product_->enqueue(arguments, workspace, stream);
    sum_.run({.x = arguments.dy, .y = arguments.db}, workspace + before_, stream);
  }

 private:
  std::unique_ptr<Kernel<ConvolutionProblem>> product_;
  Prepared<ReduceProblem> sum_;
  std::size_t before_;  // bytes of the product's workspace, which comes first
};

}  // namespace

std::size_t bias_workspace(ConvolutionProblem const& problem, Device const& device, std::size_t limit) {
  std::size_t const whole = limit / buffer_alignment * buffer_alignment;
  return padded_bytes(lower_within(whole, reduction_of(problem), device).workspace_bytes);
}

Plan<ReduceProblem> bias_plan(Plan<ConvolutionProblem> const& plan) {
  return make_plan(reduction_of(plan.problem), plan.device, within(plan.recipe.bias_bytes));
}

std::unique_ptr<Kernel<ConvolutionProblem>> with_bias(Plan<ConvolutionProblem> const& plan,
                                                      std::unique_ptr<Kernel<ConvolutionProblem>> product) {
  return std::make_unique<WithBias>(plan, std::move(product));
}

Candidate<ConvolutionProblem> bias_candidate() {
  Candidate<ConvolutionProblem> candidate{
      "bias_gradient",
      {{[](ConvolutionProblem const& problem, Device const&) {
        return problem.direction == ConvolutionDirection::bias ? std::string()
                                                               : std::string("supports bias gradients only");
      }}},
      nullptr,
      [](Plan<ConvolutionProblem> const& plan) { return with_bias(plan, nullptr); }};
  candidate.offer = [](ConvolutionProblem const& problem, Device const& device, PlanOptions const& options) {
    Offer<ConvolutionProblem> offer;
    offer.refusal = options.policy.refusal();
    offer.workspace_bytes = offer.recipe.bias_bytes = bias_workspace(problem, device, options.max_workspace);
    return offer;
  };
  return candidate;
}

}  // namespace cosmati::plan
