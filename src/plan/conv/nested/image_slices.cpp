// Divides a problem into slices of images.
#include "src/plan/conv/nested/image_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cosmati/ops/elementwise.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/nested/inner_plans.h"
#include "src/plan/conv/nested/slices.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr Index slice_pixels = 0x40000000;  // leaves room for counting past the end of a slice

// The pixels of an image that count as rows of one product or, for a filter gradient, as depth.
Index pixels_of_image(Problem const& p) {
  Index const windows = p.y.extent(2) * p.y.extent(3);
  if (p.direction != ConvolutionDirection::data) return windows;
  auto const places = [&](int i) { return (p.x.extent(2 + i) + p.stride[i] - 1) / p.stride[i]; };
  return std::max(windows, places(0) * places(1));
}

// The filter gradients of all slices, to be summed: (slice, k, c, r, s).
TensorDescription sums_of_slices(Problem const& p, Index slices) {
  return describe(accumulator_type(p.x.type, p.y.type),
                  Shape(slices, p.w.extent(0), p.w.extent(1), p.w.extent(2), p.w.extent(3)));
}

// The problem of `count` images, which may start at any multiple of `step` images.
SlicedProblem slice_and_steps(Problem problem, Index step, Index count) {
  SliceSteps own;
  problem.db = {};
  own.x = cut(problem.x, 0, step, count);
  own.y = cut(problem.y, 0, step, count);
  for (std::size_t i = 0; i < problem.epilogue.operands.size(); ++i)
    own.operands.push_back(
        cut(problem.epilogue.operands[i], dimension_of_operand(problem, i, "n"), step, count));
  for (TensorDescription& store : problem.epilogue.stores) own.stores.push_back(cut(store, 0, step, count));
  if (problem.direction == ConvolutionDirection::filter) {
    TensorDescription const sums = sums_of_slices(problem, 1);
    problem.w = describe(sums.type, Shape(sums.extent(1), sums.extent(2), sums.extent(3), sums.extent(4)));
    problem.w.alignment = size_of(sums.type);
  }
  return {std::move(problem), std::move(own)};
}

Problem slice_of(Problem const& problem, Index step, Index count) {
  return slice_and_steps(problem, step, count).problem;
}

ReduceProblem sum_of_slices(Problem const& problem, Index slices) {
  ReduceProblem sum{ReduceOperation::sum, sums_of_slices(problem, slices), problem.w};
  sum.y.layout.shape =
      Shape(1, problem.w.extent(0), problem.w.extent(1), problem.w.extent(2), problem.w.extent(3));
  for (int d = 4; d > 0; --d) sum.y.layout.stride[d] = problem.w.layout.stride[d - 1];
  sum.y.layout.stride[0] = 0;
  return sum;
}

Index slices_of(Problem const& problem, Index images) { return (problem.y.extent(0) + images - 1) / images; }
Index last_of(Problem const& problem, Index images) {
  return problem.y.extent(0) - (slices_of(problem, images) - 1) * images;
}

// The bytes of the slices' partial gradients. In the workspace they follow the memory that the slices and
// then the sum use.
std::size_t bytes_of_sums(Problem const& problem, Index images) {
  if (problem.direction != ConvolutionDirection::filter) return 0;
  return padded_bytes(static_cast<std::size_t>(sums_of_slices(problem, slices_of(problem, images)).bytes()));
}

// `batch_invariant` is the option of the whole plan. On the host, slices of one image need not be
// batch-invariant.
PlanOptions within(std::size_t workspace_bytes, std::optional<double> max_error, bool batch_invariant,
                   Device const& device) {
  return options_within(workspace_bytes, max_error, batch_invariant && device.backend != Backend::cpu);
}

SlicesRecipe const& slices_recipe(Plan<Problem> const& plan) {
  return std::get<SlicesRecipe>(plan.recipe.own);
}

// The workspace of the slices' plans or of the sum's plan, which run consecutively.
std::size_t own_bytes(Plan<Problem> const& plan) {
  return plan.workspace_bytes - plan.recipe.bias_bytes -
         bytes_of_sums(plan.problem, slices_recipe(plan).images);
}

class ImageSlices final : public Kernel<Problem> {
 public:
  explicit ImageSlices(Plan<Problem> const& plan)
      : problem_(plan.problem),
        images_(slices_recipe(plan).images),
        slice_(cosmati::prepare(plan_of_slice(plan))),
        sums_(own_bytes(plan)) {
    PlanOptions const own = within(sums_, slices_recipe(plan).max_error, plan.batch_invariant, plan.device);
    steps_ = slice_and_steps(problem_, images_, images_).steps;
    Index const last = last_of(problem_, images_);
    if (last != images_)
      last_ = cosmati::prepare(make_plan(slice_of(problem_, images_, last), plan.device, own));
    if (problem_.direction == ConvolutionDirection::filter)
      sum_ = cosmati::prepare(
          make_plan(sum_of_slices(problem_, slices_of(problem_, images_)), plan.device, own));
  }

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    Index const slices = slices_of(problem_, images_);
    for (Index i = 0; i < slices; ++i)
      run(i + 1 == slices && last_ ? *last_ : slice_, SliceArguments(arguments, steps_, i).arguments,
          workspace, i, stream);
    if (sum_) sum_->run({.x = workspace + sums_, .y = arguments.dw}, workspace, stream);
  }

 private:
  void run(Prepared<Problem> const& prepared, Problem::Arguments slice, std::byte* workspace, Index number,
           Stream stream) const {
    if (sum_) {
      TensorDescription const& sums = sum_->plan().problem.x;
      slice.dw = workspace + sums_ + number * sums.layout.stride[0] * size_of(sums.type);
    }
    prepared.run(slice, workspace, stream);
  }

  Problem problem_;
  Index images_;
  Prepared<Problem> slice_;
  std::size_t sums_;  // offset of the slices' partial gradients in the workspace
  SliceSteps steps_;
  std::optional<Prepared<Problem>> last_;
  std::optional<Prepared<ReduceProblem>> sum_;
};

}  // namespace

Plan<Problem> plan_of_slice(Plan<Problem> const& plan) {
  return make_plan(slice_of(plan.problem, slices_recipe(plan).images, slices_recipe(plan).images),
                   plan.device,
                   within(own_bytes(plan), slices_recipe(plan).max_error, plan.batch_invariant, plan.device));
}

std::unique_ptr<Kernel<Problem>> prepare_image_slices(Plan<Problem> const& plan) {
  return std::make_unique<ImageSlices>(plan);
}

Offer<Problem> slices_of_images(Problem const& problem, Device const& device, PlanOptions const& options,
                                Index images) {
  Offer<Problem> offer;
  offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  Index const last = last_of(problem, images), slices = slices_of(problem, images);
  std::size_t const sums = bytes_of_sums(problem, images);
  PlanOptions const left = within(options.max_workspace - std::min(sums, options.max_workspace),
                                  options.max_error, options.batch_invariant, device);
  auto const slice = make_plan(slice_of(problem, images, images), device, left);
  std::size_t own = slice.workspace_bytes;
  if (last != images)
    own = std::max(own, make_plan(slice_of(problem, images, last), device, left).workspace_bytes);
  if (problem.direction == ConvolutionDirection::filter)
    own = std::max(own, make_plan(sum_of_slices(problem, slices), device, left).workspace_bytes);
  offer.recipe.algorithm = ConvolutionAlgorithm::image_slices;
  offer.recipe.own = SlicesRecipe{images, options.max_error};
  offer.workspace_bytes = padded_bytes(own) + sums;
  Considered const& chosen = slice.chosen();
  offer.predicted_seconds = static_cast<double>(slices) * chosen.predicted_seconds;
  offer.expected_error = chosen.expected_error;
  offer.text =
      fmt::format("{} slices of {} images, each by {}: {}", slices, images, slice.kernel, chosen.recipe);
  return offer;
}

Offer<Problem> image_slices(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (!offer.refusal.empty()) return offer;
  Index const of_image = pixels_of_image(problem);
  if (problem.y.extent(0) * of_image <= max_int)
    offer.refusal = fmt::format("splits batches of more than {} pixels; this one has {}", max_int,
                                problem.y.extent(0) * of_image);
  else if (of_image > max_int)
    offer.refusal = fmt::format("one image has {} pixels; at most {}", of_image, max_int);
  if (!offer.refusal.empty()) return offer;
  Index const maximum = std::max<Index>(1, slice_pixels / of_image), slices = slices_of(problem, maximum);
  return slices_of_images(problem, device, options, (problem.y.extent(0) + slices - 1) / slices);
}

namespace {

constexpr char const* slices_name = "image_slices";

// True if images are stored consecutively, so that the inner strides do not depend on their number.
bool is_stack_of_images(TensorDescription const& tensor) {
  for (int d = 1; d < 4; ++d)
    if (tensor.extent(d) > 1 && tensor.layout.stride[0] < tensor.layout.stride[d] * tensor.extent(d))
      return false;
  return true;
}

Offer<Problem> one_image_at_a_time(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  if (!options.batch_invariant && options.kernel != slices_name)
    offer.refusal = "computes one image after another; only for batch-invariant plans";
  else if (problem.sums_over_batch() != nullptr)
    offer.refusal = std::string(problem.sums_over_batch()) + " over the images";
  else if (!is_stack_of_images(problem.x) || !is_stack_of_images(problem.y))
    offer.refusal =
        "images are interleaved: their strides, and therefore the kernel, depend on the batch size";
  return offer.refusal.empty() ? slices_of_images(problem, device, options, 1) : offer;
}

}  // namespace

Candidate<Problem> one_image_candidate() {
  Candidate<Problem> candidate{slices_name, {}, nullptr, &prepare_image_slices};
  candidate.offer = &one_image_at_a_time;
  candidate.batch_invariant = true;
  return candidate;
}

}  // namespace cosmati::plan
