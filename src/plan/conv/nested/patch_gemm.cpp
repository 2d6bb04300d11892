// Plans and runs the product and the copy; the patches are stored in the workspace, after the memory of both
// plans.
#include "src/plan/conv/nested/patch_gemm.h"

#include <fmt/format.h>

#include "src/plan/buffers.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/nested/inner_plans.h"
#include "src/plan/conv/runs.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

struct Patches {
  std::string refusal;    // not empty: why the gradient is not a product and a copy
  GemmProblem product;    // d(patch, place within it), places in the order (row, column, channel)
  TransformProblem copy;  // (row of patches, column and channel of a patch, its row, column of patches)
};

// The reason why the windows are not patches that cover dx.
std::string patch_violation(Problem const& p) {
  if (p.direction != ConvolutionDirection::data)
    return "computes only data gradients, whose patches are the rows of a matrix";
  if (p.groups != 1) return fmt::format("{} groups; one product needs 1", p.groups);
  if (p.w.extent(2) * p.w.extent(3) == 1) return "the filter has 1x1 taps, whose patches are pixels";
  for (int i : {0, 1}) {
    Index const taps = p.w.extent(2 + i), covered = p.y.extent(2 + i) * taps;
    if (p.stride[i] != taps || (p.dilation[i] != 1 && taps > 1))
      return fmt::format("stride {} and dilation {}; patches of {} taps that cover dx need {} and 1",
                         p.stride[i], p.dilation[i], taps, taps);
    if (p.pad_begin[i] != 0 || p.x.extent(2 + i) != covered)
      return fmt::format(
          "{} windows of {} taps with padding {} for {} {}; patches must cover dx without padding",
          p.y.extent(2 + i), taps, p.pad_begin[i], p.x.extent(2 + i), i == 0 ? "rows" : "columns");
  }
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y})
    if (tensor->layout.size() == 0) return fmt::format("{} has no elements", to_string(*tensor));
  if (!p.epilogue.operands.empty() || !p.epilogue.stores.empty())
    return "the epilogue names tensors, whose pixels are not those of the product";
  return {};
}

Patches patches_of(Problem const& p) {
  Patches made;
  made.refusal = patch_violation(p);
  if (!made.refusal.empty()) return made;
  Index const down = p.w.extent(2), across = p.w.extent(3), columns = p.y.extent(3);
  Index const row = p.x.layout.stride[2], column = p.x.layout.stride[3];
  auto const pixels = joined(run_of(p.y, 0), joined(run_of(p.y, 2), run_of(p.y, 3))),
             places = joined(run_of(p.w, 2), joined(run_of(p.w, 3), run_of(p.w, 1))),
             of_row = joined(Run{across, column}, run_of(p.x, 1)),
             rows = joined(run_of(p.x, 0), Run{p.y.extent(2), down * row});
  made.refusal = !pixels   ? "dy: no single stride covers the pixels of all images"
                 : !places ? "w: no single stride covers all taps and channels (channels last)"
                 : !of_row ? "dx: no single stride covers the channels of adjacent pixels (channels last)"
                 : !rows   ? "dx: no single stride covers the rows of all images"
                           : "";
  if (!made.refusal.empty()) return made;
  GemmProblem& product = made.product;
  Run const one, filters = run_of(p.w, 0);
  product.a = matrix(p.y, one, *pixels, run_of(p.y, 1));
  product.b = matrix(p.w, one, filters, *places);
  product.d = describe(p.x.type, Shape(Index{1}, pixels->extent, places->extent));
  product.epilogue = p.epilogue;
  Index const run = of_row->extent;
  made.copy = {p.x, p.x};
  made.copy.x.alignment = TensorDescription::default_alignment;
  made.copy.x.layout.shape = made.copy.y.layout.shape = Shape(rows->extent, run, down, columns);
  Index const from[] = {columns * down * run, 1, run, down * run},
              to[] = {rows->stride, of_row->stride, row, across * column};
  for (int d = 0; d < 4; ++d) made.copy.x.layout.stride[d] = from[d], made.copy.y.layout.stride[d] = to[d];
  return made;
}

class PatchGemm final : public Kernel<Problem> {
 public:
  explicit PatchGemm(Plan<Problem> const& plan)
      : product_(cosmati::prepare(plan_of_patches(plan))),
        copy_(cosmati::prepare(plan_of_places(plan))),
        offset_(offset_between(product_.workspace_bytes(), copy_.workspace_bytes())) {}

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    std::byte* const patches = workspace + offset_;
    product_.run({.a = arguments.dy, .b = arguments.w, .d = patches, .scalars = arguments.scalars}, workspace,
                 stream);
    copy_.run({.x = patches, .y = arguments.dx}, workspace, stream);
  }

 private:
  Prepared<GemmProblem> product_;
  Prepared<TransformProblem> copy_;
  std::size_t offset_;
};

}  // namespace

Plan<GemmProblem> plan_of_patches(Plan<Problem> const& plan) {
  Patches const patches = patches_of(plan.problem);
  return make_plan(patches.product, plan.device, options_beside(patches.product.d, plan));
}

Plan<TransformProblem> plan_of_places(Plan<Problem> const& plan) {
  Patches const patches = patches_of(plan.problem);
  return make_plan(patches.copy, plan.device, options_beside(patches.product.d, plan));
}

std::unique_ptr<Kernel<Problem>> prepare_patch_gemm(Plan<Problem> const& plan) {
  return std::make_unique<PatchGemm>(plan);
}

Offer<Problem> patch_gemm(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (offer.refusal.empty()) offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  Patches const made = patches_of(problem);
  offer.refusal = made.refusal;
  if (!offer.refusal.empty()) return offer;
  std::size_t const own = bytes_between(made.product.d), limit = workspace_limit(options, device);
  offer.refusal = workspace_violation(own, limit);
  if (!offer.refusal.empty()) return offer;
  offer.refusal = refusal_of_inner(limit - own, [&] {
    PlanOptions const left = options_within(limit - own, options.max_error);
    auto const product = make_plan(made.product, device, left);
    auto const copy = make_plan(made.copy, device, left);
    Considered const &first = product.chosen(), &then = copy.chosen();
    offer.workspace_bytes = offset_between(product.workspace_bytes, copy.workspace_bytes) + own;
    offer.predicted_seconds = first.predicted_seconds + then.predicted_seconds;
    offer.expected_error = first.expected_error;
    offer.text = fmt::format("{} patches of {} elements by {}: {}, then moved to their places: {}",
                             made.product.m(), made.product.n(), product.kernel, first.recipe, then.recipe);
  });
  offer.recipe.algorithm = ConvolutionAlgorithm::patch_gemm;
  offer.recipe.own = SlicesRecipe{0, options.max_error};
  return offer;
}

}  // namespace cosmati::plan
