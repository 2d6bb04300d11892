// Plans and runs the convolutions of planes that a convolution of volumes consists of.
#include "src/plan/conv/nested/depth_taps.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "src/plan/conv/nested/depth_division.h"
#include "src/plan/conv/nested/inner_plans.h"
#include "src/plan/stated_error.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr std::size_t max_parts = 1000;

// Excludes transforms, since verification uses the error bounds of sums.
PlanOptions options_of_part(Problem const& problem, Device const& device, std::size_t workspace_bytes,
                            std::optional<double> max_error, bool batch_invariant) {
  double const sums = stated_error(problem, device, "", {});
  return options_within(workspace_bytes, max_error ? std::min(*max_error, sums) : sums, batch_invariant);
}

// The steps to run; `Made<Problem>` is a Plan or a Prepared.
template <template <class> class Made>
struct Whole {
  std::vector<Made<Problem>> parts;
  std::vector<Made<ReduceProblem>> taps;
  std::optional<Made<ElementwiseProblem>> epilogue;
  std::optional<Made<ReduceProblem>> bias;
};

template <template <class> class Made, class Make>
Whole<Made> whole_of(Problem const& problem, PlaneDivision const& division, PlanOptions const& of_part,
                     PlanOptions const& of_end, Make const& make) {
  Whole<Made> whole;
  for (PlanePart const& part : division.parts) whole.parts.push_back(make(part.problem, of_part));
  if (problem.direction == ConvolutionDirection::filter)
    for (PlanePart const& part : division.parts)
      whole.taps.push_back(make(sum_of_tap(problem, part), of_end));
  if (division.epilogue) whole.epilogue = make(*division.epilogue, of_end);
  if (problem.db.present()) whole.bias = make(sum_for_bias(problem), of_end);
  return whole;
}

SlicesRecipe const& recipe_of(Plan<Problem> const& plan) { return std::get<SlicesRecipe>(plan.recipe.own); }

class DepthTaps final : public Kernel<Problem> {
 public:
  explicit DepthTaps(Plan<Problem> const& plan)
      : problem_(plan.problem),
        division_(division_of(plan.problem, plan.batch_invariant)),
        scratch_(plan.workspace_bytes - division_.sum_bytes()),
        whole_(whole_of<Prepared>(
            problem_, division_,
            options_of_part(problem_, plan.device, scratch_, recipe_of(plan).max_error, plan.batch_invariant),
            options_within(scratch_), [&](auto const& problem, PlanOptions const& options) {
              return cosmati::prepare(make_plan(problem, plan.device, options));
            })) {}

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    std::byte* const sums = workspace + scratch_;
    Problem::Arguments all = arguments;
    if (division_.sums.present()) all.y = all.dx = all.dw = sums;
    for (std::size_t i = 0; i < division_.parts.size(); ++i)
      for (Index batch = 0; batch < division_.parts[i].batches; ++batch)
        run(i, batch, all, workspace, stream);
    for (std::size_t i = 0; i < whole_.taps.size(); ++i) {
      PlaneView const to = tap_of(problem_.w, division_.parts[i].tap);
      whole_.taps[i].run(
          {.x = sums + division_.first_of[i] * gradient_bytes(), .y = moved(arguments.dw, to.base)},
          workspace, stream);
    }
    if (whole_.epilogue) {
      bool const data = problem_.direction == ConvolutionDirection::data;
      whole_.epilogue->run({.x = sums,
                            .y = data ? arguments.dx : arguments.y,
                            .operands = arguments.operands,
                            .scalars = arguments.scalars,
                            .stores = arguments.stores},
                           workspace, stream);
    }
    if (whole_.bias) whole_.bias->run({.x = arguments.dy, .y = arguments.db}, workspace, stream);
  }

 private:
  // The bytes of a partial filter gradient.
  Index gradient_bytes() const { return division_.sums.layout.stride[0] * size_of(division_.sums.type); }

  void run(std::size_t i, Index batch, Problem::Arguments const& all, std::byte* workspace,
           Stream stream) const {
    PlanePart const& part = division_.parts[i];
    Index const x = part.x.base + batch * part.x.next, y = part.y.base + batch * part.y.next;
    Problem::Arguments one;
    one.x = moved(all.x, x), one.dx = moved(all.dx, x);
    one.y = moved(all.y, y), one.dy = moved(all.dy, y);
    one.w = moved(all.w, part.w.base);
    if (!division_.first_of.empty())
      one.dw = moved(all.dw, (division_.first_of[i] + batch) * gradient_bytes());
    void const* const before = problem_.direction == ConvolutionDirection::data ? one.dx : one.y;
    if (part.adds) one.operands = {&before, 1};
    whole_.parts[i].run(one, workspace, stream);
  }

  Problem problem_;
  PlaneDivision division_;
  std::size_t scratch_;  // bytes of the workspace that the parts and then the final step use
  Whole<Prepared> whole_;
};

double products_of(PlanePart const& part) {
  Problem const& p = part.problem;
  return static_cast<double>(p.y.layout.size()) * static_cast<double>(p.w.layout.size());
}

std::size_t largest_of(std::vector<PlanePart> const& parts) {
  return static_cast<std::size_t>(std::max_element(parts.begin(), parts.end(),
                                                   [](PlanePart const& a, PlanePart const& b) {
                                                     return products_of(a) < products_of(b);
                                                   }) -
                                  parts.begin());
}

Offer<Problem> depth_taps(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = options.policy.refusal();
  if (!problem.has_depth()) offer.refusal = "supports volumes (N, C, D, H, W), not images";
  auto const& expression = problem.epilogue.expression;
  if (expression.operands().size() > max_elementwise_operands ||
      expression.stores().size() > max_elementwise_stores || expression.scalars().size() > 12)
    offer.refusal = fmt::format(
        "the epilogue names {} arrays, {} stores and {} scalars; for volumes, at most {}, {} and 12",
        expression.operands().size(), expression.stores().size(), expression.scalars().size(),
        max_elementwise_operands, max_elementwise_stores);
  if (!offer.refusal.empty()) return offer;
  PlaneDivision const division = division_of(problem, options.batch_invariant);
  if (division.parts.size() > max_parts) {
    offer.refusal = fmt::format("needs {} different convolutions of planes; at most {}",
                                division.parts.size(), max_parts);
    return offer;
  }
  std::size_t const left = options.max_workspace - std::min(division.sum_bytes(), options.max_workspace);
  Whole<Plan> const whole = whole_of<Plan>(
      problem, division, options_of_part(problem, device, left, options.max_error, options.batch_invariant),
      options_within(left),
      [&](auto const& part, PlanOptions const& own) { return make_plan(part, device, own); });
  std::size_t scratch = 0;
  double launches = 0;
  auto const count = [&](auto const& plan, Index times) {
    scratch = std::max(scratch, plan.workspace_bytes);
    launches += static_cast<double>(times);
    offer.predicted_seconds += static_cast<double>(times) * plan.chosen().predicted_seconds;
  };
  for (std::size_t i = 0; i < whole.parts.size(); ++i) count(whole.parts[i], division.parts[i].batches);
  for (auto const& plan : whole.taps) count(plan, 1);
  if (whole.epilogue) count(*whole.epilogue, 1);
  if (whole.bias) count(*whole.bias, 1);
  offer.recipe.algorithm = ConvolutionAlgorithm::depth_taps;
  offer.recipe.own = SlicesRecipe{0, options.max_error};
  offer.workspace_bytes = padded_bytes(scratch) + division.sum_bytes();
  offer.text = fmt::format("{:g} runs", launches);
  if (whole.parts.empty()) return offer;
  Plan<Problem> const& largest = whole.parts[largest_of(division.parts)];
  offer.text += fmt::format(", of planes by {}", largest.kernel);
  if (std::string const& recipe = largest.chosen().recipe; !recipe.empty()) offer.text += ": " + recipe;
  return offer;
}

}  // namespace

std::optional<Plan<Problem>> plan_of_planes(Plan<Problem> const& plan) {
  PlaneDivision const division = division_of(plan.problem, plan.batch_invariant);
  if (division.parts.empty()) return {};
  std::size_t const scratch = plan.workspace_bytes - division.sum_bytes();
  return make_plan(
      division.parts[largest_of(division.parts)].problem, plan.device,
      options_of_part(plan.problem, plan.device, scratch, recipe_of(plan).max_error, plan.batch_invariant));
}

Plan<ReduceProblem> plan_of_bias(Plan<Problem> const& plan) {
  PlaneDivision const division = division_of(plan.problem, plan.batch_invariant);
  return make_plan(sum_for_bias(plan.problem), plan.device,
                   options_within(plan.workspace_bytes - division.sum_bytes()));
}

Candidate<Problem> depth_taps_candidate() {
  Candidate<Problem> candidate{
      "depth_taps", {}, nullptr, [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
        return std::make_unique<DepthTaps>(plan);
      }};
  candidate.offer = &depth_taps;
  candidate.batch_invariant = true;
  return candidate;
}

}  // namespace cosmati::plan
