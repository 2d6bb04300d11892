// Divides a problem into its groups.
#include "src/plan/conv/nested/group_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/nested/inner_plans.h"
#include "src/plan/conv/nested/slices.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// Narrower groups have kernels that compute several of them at a time; each group is a launch or more.
constexpr Index min_channels = 32, max_groups = 32;

SlicedProblem group_of(Problem const& whole) {
  SlicedProblem made{whole, {}};
  Problem& p = made.problem;
  Index const channels = whole.x.extent(1) / whole.groups, filters = whole.y.extent(1) / whole.groups;
  p.groups = 1;
  p.db = {};
  made.steps.x = cut(p.x, 1, channels, channels);
  made.steps.w = cut(p.w, 0, filters, filters);
  made.steps.y = cut(p.y, 1, filters, filters);
  // In an epilogue, k is the channel of the result: of y, or of dx. Filter gradients have none.
  Index const results = whole.direction == ConvolutionDirection::data ? channels : filters;
  for (std::size_t i = 0; i < p.epilogue.operands.size(); ++i)
    made.steps.operands.push_back(
        cut(p.epilogue.operands[i], dimension_of_operand(whole, i, "k"), results, results));
  for (TensorDescription& store : p.epilogue.stores)
    made.steps.stores.push_back(cut(store, 1, results, results));
  return made;
}

std::string groups_violation(Problem const& problem, Device const& device, PlanOptions const& options) {
  if (problem.groups == 1) return "there is one group";
  if (std::string sentence = problem_violation(problem, device.backend); !sentence.empty()) return sentence;
  if (std::string sentence = options.policy.refusal(); !sentence.empty()) return sentence;
  Index const channels = problem.x.extent(1) / problem.groups, filters = problem.y.extent(1) / problem.groups;
  if (std::min(channels, filters) < min_channels || problem.groups > max_groups)
    return fmt::format(
        "{} groups of {} and {} channels; running groups separately pays off for at most {} groups of at "
        "least {}",
        problem.groups, channels, filters, max_groups, min_channels);
  return {};
}

class GroupSlices final : public Kernel<Problem> {
 public:
  explicit GroupSlices(Plan<Problem> const& plan)
      : group_(cosmati::prepare(plan_of_group(plan))),
        steps_(steps_of_groups(plan.problem)),
        groups_(plan.problem.groups) {}

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    for (Index i = 0; i < groups_; ++i)
      group_.run(SliceArguments(arguments, steps_, i).arguments, workspace, stream);
  }

 private:
  Prepared<Problem> group_;
  SliceSteps steps_;
  Index groups_;
};

}  // namespace

SliceSteps steps_of_groups(Problem const& problem) { return group_of(problem).steps; }

Plan<Problem> plan_of_group(Plan<Problem> const& plan) {
  return make_plan(group_of(plan.problem).problem, plan.device,
                   options_within(plan.workspace_bytes - plan.recipe.bias_bytes,
                                  std::get<SlicesRecipe>(plan.recipe.own).max_error));
}

std::unique_ptr<Kernel<Problem>> prepare_group_slices(Plan<Problem> const& plan) {
  return std::make_unique<GroupSlices>(plan);
}

Offer<Problem> group_slices(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = groups_violation(problem, device, options);
  if (!offer.refusal.empty()) return offer;
  Problem const one = group_of(problem).problem;
  validate(one);
  offer.refusal = refusal_of_inner(options.max_workspace, [&] {
    auto const group = make_plan(one, device, options_within(options.max_workspace, options.max_error));
    offer.workspace_bytes = padded_bytes(group.workspace_bytes);
    Considered const& chosen = group.chosen();
    offer.predicted_seconds = static_cast<double>(problem.groups) * chosen.predicted_seconds;
    offer.expected_error = chosen.expected_error;
    offer.text = fmt::format("{} groups, each by {}: {}", problem.groups, group.kernel, chosen.recipe);
  });
  offer.recipe.algorithm = ConvolutionAlgorithm::group_slices;
  offer.recipe.own = SlicesRecipe{0, options.max_error};
  return offer;
}

}  // namespace cosmati::plan
