// Plans and runs the products and their sum; the products are stored in the workspace, after the memory of
// both plans.
#include "src/plan/conv/nested/image_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/plan/buffers.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/nested/inner_plans.h"
#include "src/plan/conv/plain_gemm.h"
#include "src/plan/conv/winograd/winograd.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

ReduceProblem sum_of(Problem const& problem, GemmProblem const& products) {
  Index const filters = problem.w.extent(0), channels = problem.w.extent(1);
  ReduceProblem sum{ReduceOperation::sum, products.d, problem.w};
  sum.y.layout = row_major({1, filters, channels});
  for (int d : {0, 1}) sum.y.layout.stride[d + 1] = problem.w.layout.stride[d];
  return sum;
}

// Fills in the workspace, prediction, error and text.
void fill(Offer<Problem>& offer, Plan<GemmProblem> const& products, Plan<ReduceProblem> const& sum) {
  TensorDescription const& d = products.problem.d;
  offer.workspace_bytes =
      offset_between(products.workspace_bytes, sum.workspace_bytes) + bytes_between(products.problem.d);
  Considered const &product = products.chosen(), &then = sum.chosen();
  offer.predicted_seconds = product.predicted_seconds + then.predicted_seconds;
  // The sum of all images' errors has the relative error of one image; the error of the sum itself is
  // independent. Not std::hypot, which would need glibc 2.35.
  double const of_one = product.expected_error, of_sum = sums_error(d.type, d.extent(0));
  offer.expected_error = std::sqrt(of_one * of_one + of_sum * of_sum);
  offer.text = fmt::format("{} products of {} by {}: {}, then their sum: {}", d.extent(0), d.extent(1),
                           d.extent(2), product.recipe, then.recipe);
}

class ImageProducts final : public Kernel<Problem> {
 public:
  explicit ImageProducts(Plan<Problem> const& plan)
      : products_(cosmati::prepare(plan_of_products(plan))),
        sum_(cosmati::prepare(plan_of_sum(plan))),
        offset_(offset_between(products_.workspace_bytes(), sum_.workspace_bytes())) {}

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    std::byte* const products = workspace + offset_;
    products_.run({.a = arguments.dy, .b = arguments.x, .d = products}, workspace, stream);
    sum_.run({.x = products, .y = arguments.dw}, workspace, stream);
  }

 private:
  Prepared<GemmProblem> products_;
  Prepared<ReduceProblem> sum_;
  std::size_t offset_;
};

}  // namespace

Plan<GemmProblem> plan_of_products(Plan<Problem> const& plan) {
  GemmProblem const products = products_of_images(plan.problem).problem;
  return make_plan(products, plan.device, options_beside(products.d, plan));
}

Plan<ReduceProblem> plan_of_sum(Plan<Problem> const& plan) {
  GemmProblem const products = products_of_images(plan.problem).problem;
  return make_plan(sum_of(plan.problem, products), plan.device, options_beside(products.d, plan));
}

std::unique_ptr<Kernel<Problem>> prepare_image_products(Plan<Problem> const& plan) {
  return std::make_unique<ImageProducts>(plan);
}

Offer<Problem> image_products(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (offer.refusal.empty()) offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  PlainGemm const made = products_of_images(problem);
  offer.refusal = made.refusal;
  if (!offer.refusal.empty()) return offer;
  std::size_t const own = bytes_between(made.problem.d), limit = workspace_limit(options, device);
  offer.refusal = workspace_violation(own, limit);
  if (!offer.refusal.empty()) return offer;
  offer.refusal = refusal_of_inner(limit - own, [&] {
    PlanOptions const left = options_within(limit - own, options.max_error);
    fill(offer, make_plan(made.problem, device, left),
         make_plan(sum_of(problem, made.problem), device, left));
  });
  offer.recipe.algorithm = ConvolutionAlgorithm::image_products;
  offer.recipe.own = SlicesRecipe{0, options.max_error};
  return offer;
}

}  // namespace cosmati::plan
