// Plans and runs the product and the copy; the patches are stored in the workspace, after the memory of both
// plans.
#include "src/plan/conv/nested/patch_gemm.h"

#include <fmt/format.h>

#include "src/plan/buffers.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/form.h"
#include "src/plan/conv/nested/inner_plans.h"
#include "src/plan/conv/runs.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

struct Patches {
  std::string refusal;    // not empty: why the gradient is not a product and a copy
  GemmProblem product;    // data: d(patch, place within it); filter: b is that matrix, d(filter, place)
  TransformProblem copy;  // data: from the product's result to dx; filter: from x
  bool from_x = false;
  Run patch, place;  // of the matrix of patches

  TensorDescription const& between() const { return from_x ? product.b : product.d; }
};

// The reason why windows of one tap are not pixels of x with a stride.
std::string pixel_violation(Problem const& p) {
  if (p.direction != ConvolutionDirection::filter) return "the filter has 1x1 taps, whose patches are pixels";
  if (p.stride[0] == 1 && p.stride[1] == 1) return "stride 1; the pixels of a 1x1 filter need no copy";
  for (int i : {0, 1})
    if (p.pad_begin[i] != 0 || (p.y.extent(2 + i) - 1) * p.stride[i] >= p.x.extent(2 + i))
      return fmt::format("windows lie in the padding of {}; each must be a pixel of x",
                         i == 0 ? "rows" : "columns");
  return {};
}

// The reason why windows are not patches that cover x.
std::string cover_violation(Problem const& p) {
  char const* const image = p.direction == ConvolutionDirection::filter ? "x" : "dx";
  for (int i : {0, 1}) {
    Index const taps = p.w.extent(2 + i), covered = p.y.extent(2 + i) * taps;
    if (p.stride[i] != taps || (p.dilation[i] != 1 && taps > 1))
      return fmt::format("stride {} and dilation {}; patches of {} taps that cover {} need {} and 1",
                         p.stride[i], p.dilation[i], taps, image, taps);
    if (p.pad_begin[i] != 0 || p.x.extent(2 + i) != covered)
      return fmt::format(
          "{} windows of {} taps with padding {} for {} {}; patches must cover {} without padding",
          p.y.extent(2 + i), taps, p.pad_begin[i], p.x.extent(2 + i), i == 0 ? "rows" : "columns", image);
  }
  return {};
}

std::string patch_violation(Problem const& p) {
  if (p.direction != ConvolutionDirection::data && p.direction != ConvolutionDirection::filter)
    return "computes only gradients of data and filters";
  if (p.groups != 1) return fmt::format("{} groups; one product needs 1", p.groups);
  if (std::string sentence = has_one_tap(p) ? pixel_violation(p) : cover_violation(p); !sentence.empty())
    return sentence;
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y})
    if (tensor->layout.size() == 0) return fmt::format("{} has no elements", to_string(*tensor));
  if (!p.epilogue.operands.empty() || !p.epilogue.stores.empty())
    return "the epilogue names tensors, whose pixels are not those of the product";
  return {};
}

// Describes the copy between the image and the matrix of patches; returns why it cannot.
std::string describe_copy(Problem const& p, Patches& made) {
  TensorDescription image = p.x, dense = p.x;
  dense.alignment = TensorDescription::default_alignment;
  Index const columns = p.y.extent(3), patch = made.patch.stride, place = made.place.stride;
  if (has_one_tap(p)) {
    image.layout.shape = dense.layout.shape = Shape(p.y.extent(0), p.x.extent(1), p.y.extent(2), columns);
    Index const in_matrix[] = {p.y.extent(2) * columns * patch, place, columns * patch, patch};
    for (int d = 0; d < 4; ++d) dense.layout.stride[d] = in_matrix[d];
    for (int i : {0, 1}) image.layout.stride[2 + i] *= p.stride[i];
  } else {
    Index const down = p.w.extent(2), across = p.w.extent(3);
    Index const row = p.x.layout.stride[2], column = p.x.layout.stride[3];
    char const* const name = made.from_x ? "x" : "dx";
    auto const of_row = joined(Run{across, column}, run_of(p.x, 1)),
               rows = joined(run_of(p.x, 0), Run{p.y.extent(2), down * row});
    if (!of_row)
      return fmt::format("{}: no single stride covers the channels of adjacent pixels (channels last)", name);
    if (!rows) return fmt::format("{}: no single stride covers the rows of all images", name);
    // (row of patches, column and channel of a patch, its row, column of patches)
    Index const run = of_row->extent;
    image.layout.shape = dense.layout.shape = Shape(rows->extent, run, down, columns);
    Index const in_matrix[] = {columns * patch, place, run * place, patch},
                in_image[] = {rows->stride, of_row->stride, row, across * column};
    for (int d = 0; d < 4; ++d) dense.layout.stride[d] = in_matrix[d], image.layout.stride[d] = in_image[d];
  }
  made.copy = made.from_x ? TransformProblem{image, dense} : TransformProblem{dense, image};
  return {};
}

// along_k: the matrix of patches is contiguous along them, not along the elements of each.
Patches patches_of(Problem const& p, bool along_k) {
  Patches made;
  made.refusal = patch_violation(p);
  if (!made.refusal.empty()) return made;
  auto const pixels = joined(run_of(p.y, 0), joined(run_of(p.y, 2), run_of(p.y, 3))),
             places = joined(run_of(p.w, 2), joined(run_of(p.w, 3), run_of(p.w, 1)));
  made.refusal = !pixels   ? "dy: no single stride covers the pixels of all images"
                 : !places ? "w: no single stride covers all taps and channels (channels last)"
                           : "";
  if (!made.refusal.empty()) return made;
  made.from_x = p.direction == ConvolutionDirection::filter;
  // TMA loads lines whose beginnings are aligned.
  Index const unit = max_vector_bytes / size_of(p.x.type),
              padded = ceiling_divide(pixels->extent, unit) * unit;
  made.patch = {pixels->extent, along_k ? 1 : places->extent};
  made.place = {places->extent, along_k ? padded : 1};
  made.refusal = describe_copy(p, made);
  if (!made.refusal.empty()) return made;
  GemmProblem& product = made.product;
  Run const one, filters = run_of(p.w, 0), of_y = run_of(p.y, 1);
  TensorDescription between = matrix(p.x, one, made.patch, made.place);
  between.alignment = TensorDescription::default_alignment;
  product.a = made.from_x ? matrix(p.y, one, of_y, *pixels) : matrix(p.y, one, *pixels, of_y);
  product.b = made.from_x ? between : matrix(p.w, one, filters, *places);
  product.d = made.from_x ? matrix(p.w, one, filters, *places) : between;
  product.epilogue = p.epilogue;
  return made;
}

Patches patches_of(Plan<Problem> const& plan) {
  return patches_of(plan.problem, std::get<SlicesRecipe>(plan.recipe.own).along_k);
}

class PatchGemm final : public Kernel<Problem> {
 public:
  explicit PatchGemm(Plan<Problem> const& plan)
      : product_(cosmati::prepare(plan_of_patches(plan))),
        copy_(cosmati::prepare(plan_of_places(plan))),
        offset_(offset_between(product_.workspace_bytes(), copy_.workspace_bytes())),
        from_x_(plan.problem.direction == ConvolutionDirection::filter) {}

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    std::byte* const patches = workspace + offset_;
    if (from_x_) {
      copy_.run({.x = arguments.x, .y = patches}, workspace, stream);
      product_.run({.a = arguments.dy, .b = patches, .d = arguments.dw, .scalars = arguments.scalars},
                   workspace, stream);
      return;
    }
    product_.run({.a = arguments.dy, .b = arguments.w, .d = patches, .scalars = arguments.scalars}, workspace,
                 stream);
    copy_.run({.x = patches, .y = arguments.dx}, workspace, stream);
  }

 private:
  Prepared<GemmProblem> product_;
  Prepared<TransformProblem> copy_;
  std::size_t offset_;
  bool from_x_;
};

}  // namespace

Plan<GemmProblem> plan_of_patches(Plan<Problem> const& plan) {
  Patches const patches = patches_of(plan);
  return make_plan(patches.product, plan.device, options_beside(patches.between(), plan));
}

Plan<TransformProblem> plan_of_places(Plan<Problem> const& plan) {
  Patches const patches = patches_of(plan);
  return make_plan(patches.copy, plan.device, options_beside(patches.between(), plan));
}

std::unique_ptr<Kernel<Problem>> prepare_patch_gemm(Plan<Problem> const& plan) {
  return std::make_unique<PatchGemm>(plan);
}

namespace {

// Fills in the offer with the plans of both parts, or with the reason for refusing.
void plan_parts(Offer<Problem>& offer, Patches const& made, Device const& device,
                PlanOptions const& options) {
  // Twelve filter gradients on an H200 took 1.08 to 1.38 times as long as both parts are predicted to take.
  constexpr double longer = 1.25;
  offer.refusal = made.refusal;
  if (!offer.refusal.empty()) return;
  std::size_t const own = bytes_between(made.between()), limit = workspace_limit(options, device);
  offer.refusal = workspace_violation(own, limit);
  if (!offer.refusal.empty()) return;
  offer.refusal = refusal_of_inner(limit - own, [&] {
    PlanOptions const left = options_within(limit - own, options.max_error);
    auto const product = make_plan(made.product, device, left);
    auto const copy = make_plan(made.copy, device, left);
    Considered const &first = product.chosen(), &then = copy.chosen();
    offer.workspace_bytes = offset_between(product.workspace_bytes, copy.workspace_bytes) + own;
    offer.predicted_seconds = first.predicted_seconds + then.predicted_seconds;
    if (made.from_x) {
      offer.predicted_seconds *= longer;
      offer.text = fmt::format("{} patches of {} elements copied side by side: {}, then {}: {}",
                               made.product.k(), made.product.n(), then.recipe, product.kernel, first.recipe);
    } else {
      offer.expected_error = first.expected_error;  // fewer terms than windows have taps
      offer.text = fmt::format("{} patches of {} elements by {}: {}, then moved to their places: {}",
                               made.product.m(), made.product.n(), product.kernel, first.recipe, then.recipe);
    }
  });
}

}  // namespace

Offer<Problem> patch_gemm(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (offer.refusal.empty()) offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  plan_parts(offer, patches_of(problem, false), device, options);
  offer.recipe.algorithm = ConvolutionAlgorithm::patch_gemm;
  offer.recipe.own = SlicesRecipe{0, options.max_error};
  // wgmma takes tf32 only along k. Rows of fewer patches are not transposed in tiles: 1024 to 2048 channels
  // by 1x1 with stride 2 to 7x7 took 76 us on an H200 instead of 66.
  constexpr Index least_columns = 8;
  if (problem.direction != ConvolutionDirection::filter || problem.x.type != DataType::tf32 ||
      problem.y.extent(3) < least_columns)
    return offer;
  Offer<Problem> along_k = offer;
  plan_parts(along_k, patches_of(problem, true), device, options);
  along_k.recipe.own = SlicesRecipe{0, options.max_error, true};
  bool const better = along_k.refusal.empty() &&
                      (!offer.refusal.empty() || along_k.predicted_seconds < offer.predicted_seconds);
  return better ? along_k : offer;
}

}  // namespace cosmati::plan
