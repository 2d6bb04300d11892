// The convolution algorithms and their requirements.
#include "src/plan/conv/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/plan/buffers.h"
#include "src/plan/conv/bias.h"
#include "src/plan/conv/depthwise_rows.h"
#include "src/plan/conv/dgrad_small_c.h"
#include "src/plan/conv/fft/fft.h"
#include "src/plan/conv/filter/filter_copy.h"
#include "src/plan/conv/filter/wgrad_direct.h"
#include "src/plan/conv/filter/wgrad_pointwise.h"
#include "src/plan/conv/filter/wgrad_small_c.h"
#include "src/plan/conv/filter/wgrad_taps.h"
#include "src/plan/conv/fprop_small_c.h"
#include "src/plan/conv/grouped/group_windows.h"
#include "src/plan/conv/grouped/grouped.h"
#include "src/plan/conv/nested/channels_last.h"
#include "src/plan/conv/nested/group_slices.h"
#include "src/plan/conv/nested/image_products.h"
#include "src/plan/conv/nested/image_slices.h"
#include "src/plan/conv/nested/patch_gemm.h"
#include "src/plan/conv/operand_access.h"
#include "src/plan/conv/phases.h"
#include "src/plan/conv/plain_gemm.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/program.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/conv/unroll.h"
#include "src/plan/conv/windows/image_windows.h"
#include "src/plan/conv/windows/merged_phases.h"
#include "src/plan/conv/windows/tma_im2col.h"
#include "src/plan/conv/winograd/winograd.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/gemm/operand_paths.h"
#include "src/plan/integers.h"
#include "src/plan/measured_kernel.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// Whether to exchange m and n, since adjacent lanes store adjacent columns of d. The pixels of a phase have
// gaps, but in NCHW they are still closer to each other than channels are, so they become n.
bool is_better_exchanged(ConvolutionForm const& form) {
  Index const along_m = std::abs(form.d.arguments.row_stride[2]),
              along_n = std::abs(form.d.arguments.column_stride[2]);
  return form.image_is_a && form.m[2].extent > 1 && form.n[2].extent > 1 && along_m < along_n;
}

// Merges a filter gradient's digits that have a common stride: the pixels of dy, and those of x if windows do
// not leave it. Runs may then extend over rows.
void merge_pixels(ConvolutionForm& form) {
  if (!form.a.windowed) merge_digits(form.a, form.rows(), form.depth());
  if (!form.b.windowed) merge_digits(form.b, form.columns(), form.depth());
}

std::vector<ConvolutionForm> unified_forms(Problem const& problem, bool merges = true) {
  std::vector<ConvolutionForm> forms = forms_of(problem);
  if (merges && problem.direction == ConvolutionDirection::filter)
    for (ConvolutionForm& form : forms) merge_pixels(form);
  bool const exchanges =
      problem.direction == ConvolutionDirection::data && !forms.empty() && is_better_exchanged(forms.front());
  if (exchanges)
    for (ConvolutionForm& form : forms) form = exchanged(std::move(form));
  unify(forms);
  return forms;
}

Offer<Problem> implicit_gemm(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (!offer.refusal.empty()) return offer;
  std::vector<ConvolutionForm> const forms = unified_forms(problem);
  offer.refusal = extent_violation(forms);
  if (!offer.refusal.empty()) return offer;
  ConvolutionRecipe recipe;
  recipe.launches = static_cast<int>(forms.size());
  PlanOptions without = options;
  without.policy.operands.reset();
  std::optional<OperandKind> const kind = options.policy.operands;
  FilterCopy const copy = filter_copy(problem);
  if (kind == OperandKind::registers || kind == OperandKind::threads ||
      (kind == OperandKind::repacked && copy.repack.bytes == 0))
    offer.refusal =
        "repacks only filters whose elements are not contiguous along the channels: input channels of data "
        "gradients, either channels of forward convolutions; --policy " +
        options.policy.text + " was requested";
  else if (!kind)
    offer = best_product(problem, device, without, forms, recipe);
  if (copy.repack.bytes == 0 || (kind && kind != OperandKind::repacked)) return offer;
  // Copying the filter beforehand does not change the kernel; the recipe notes which operand the filter is.
  (forms.front().swapped ? recipe.product.repack_a : recipe.product.repack_b) = copy.repack;
  Problem const left = with_filter_copied(problem, copy.repack);
  Offer<Problem> copied = best_product(left, device, without, unified_forms(left), recipe);
  bool const better = kind == OperandKind::repacked ||
                      (copied.refusal.empty() &&
                       (!offer.refusal.empty() || copied.predicted_seconds < offer.predicted_seconds));
  return better ? copied : offer;
}

Offer<Problem> direct(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (offer.refusal.empty()) offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  std::vector<ConvolutionForm> const forms = unified_forms(problem, false);
  offer.refusal = extent_violation(forms);
  if (!offer.refusal.empty()) return offer;
  offer.recipe.algorithm = ConvolutionAlgorithm::direct;
  offer.recipe.product = product_recipe(forms.front());
  bool const together =
      together_violation(problem, forms).empty() && phases_of(forms, offer.recipe).blocks <= max_int;
  offer.recipe.launches = together ? 1 : static_cast<int>(forms.size());
  double products = 0, walk = 0, results = 0;
  for (ConvolutionForm const& form : forms) {
    walk += static_cast<double>(form.depth());
    double const own = static_cast<double>(form.rows()) * static_cast<double>(form.columns()) *
                       static_cast<double>(form.groups);
    results += own;
    products += own * static_cast<double>(form.depth());
  }
  // Two loads with addresses per product: about 1/30 of the multiply-add rate. Decomposing a result's index
  // takes about a hundred instructions.
  double const rate = device.gpu.clock_hertz * device.gpu.fma_f32 * device.gpu.multiprocessors;
  constexpr double clocks_of_load = 100;  // two loads and their addresses, for a thread that waits (H100)
  offer.predicted_seconds =
      3e-6 * offer.recipe.launches +
      std::max((30 * products + 100 * results) / rate, walk * clocks_of_load / device.gpu.clock_hertz);
  offer.recipe.product.predicted_seconds = offer.predicted_seconds;
  if (device.backend == Backend::emulator)
    offer.workspace_bytes = emulator::widening_bytes(problem, offer.recipe);
  offer.text = fmt::format("one thread per element, {} launches", offer.recipe.launches);
  if (together) offer.text += fmt::format(" for {} phases", forms.size());
  return offer;
}

// Adds the bias gradient to a filter gradient: a separate launch, with its workspace after that of the filter
// gradient.
template <Offer<Problem> (*offer_of)(Problem const&, Device const&, PlanOptions const&)>
Offer<Problem> offer_with_bias(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  constexpr bool repacks = offer_of == &implicit_gemm || offer_of == &plain_gemm;
  if (!repacks && options.policy.operands)
    offer.refusal = "does not repack operands; --policy " + options.policy.text + " was requested";
  else
    offer = offer_of(problem, device, options);
  if (!problem.db.present() || !offer.refusal.empty()) return offer;
  if (makes_bias_gradient(problem, offer.recipe)) {
    offer.text += ", bias gradient included";
    return offer;
  }
  std::size_t const before = padded_bytes(offer.workspace_bytes);
  std::size_t const left = options.max_workspace - std::min(before, options.max_workspace);
  offer.recipe.bias_bytes = bias_workspace(problem, device, left);
  offer.workspace_bytes = before + offer.recipe.bias_bytes;
  offer.text += bias_gradient_apart;
  return offer;
}

template <std::unique_ptr<Kernel<Problem>> (*prepare)(Plan<Problem> const&)>
std::unique_ptr<Kernel<Problem>> prepare_on(Plan<Problem> const& plan) {
  auto product = prepare(plan);
  bool const apart = plan.problem.db.present() && !makes_bias_gradient(plan.problem, plan.recipe);
  return apart ? with_bias(plan, std::move(product)) : std::move(product);
}

}  // namespace

// Makes all forms of a problem suitable for a single kernel, with widths and majors that all of them support.
void unify(std::vector<ConvolutionForm>& forms) {
  if (forms.empty()) return;
  auto const common = [&](WindowForm ConvolutionForm::*operand) {
    OperandAccess access = (forms.front().*operand).access;
    for (ConvolutionForm const& form : forms) {
      OperandAccess const& own = (form.*operand).access;
      if (own.along != access.along) access = {Along::k, 1};
      access.width = std::min(access.width, own.width);
    }
    for (ConvolutionForm& form : forms) (form.*operand).access = access;
  };
  common(&ConvolutionForm::a);
  common(&ConvolutionForm::b);
  auto const narrowest = [&](auto const& width_of) {
    int width = 16;
    for (ConvolutionForm& form : forms) width = std::min(width, width_of(form));
    for (ConvolutionForm& form : forms) width_of(form) = width;
  };
  narrowest([](ConvolutionForm& form) -> int& { return form.d.width; });
  for (std::size_t i = 0; i < forms.front().operands.size(); ++i)
    narrowest([i](ConvolutionForm& form) -> int& { return form.operands[i].width; });
  for (std::size_t i = 0; i < forms.front().stores.size(); ++i)
    narrowest([i](ConvolutionForm& form) -> int& { return form.stores[i].width; });
}

int resident_blocks(Gpu const& gpu, int threads, int registers, int shared_bytes) {
  constexpr int reserved_bytes = 1024;  // reserved by the system for each block
  return std::min({gpu.registers_per_multiprocessor / (threads * registers),
                   gpu.shared_bytes_per_multiprocessor / (shared_bytes + reserved_bytes),
                   gpu.threads_per_multiprocessor / threads, 8});
}

std::string problem_violation(Problem const& problem, Backend backend) {
  if (problem.direction == ConvolutionDirection::bias) return "the bias gradient is not a matrix product";
  for (int i : {0, 1}) {
    Index const extent = problem.x.extent(2 + i) + problem.pad_begin[i] + problem.pad_end[i];
    if (extent > max_int)
      return fmt::format("a padded image has {} {}; at most {}", extent, i == 0 ? "rows" : "columns",
                         max_int);
  }
  auto const& expression = problem.epilogue.expression;
  if (backend == Backend::cuda && (expression.operands().size() > max_convolution_operands ||
                                   expression.scalars().size() > max_convolution_operands ||
                                   expression.stores().size() > max_convolution_stores))
    return fmt::format(
        "the epilogue names {} arrays, {} scalars and {} stores; a kernel supports at most {}, {} and {}",
        expression.operands().size(), expression.scalars().size(), expression.stores().size(),
        max_convolution_operands, max_convolution_operands, max_convolution_stores);
  return {};
}

std::string extent_violation(std::vector<ConvolutionForm> const& forms) {
  for (ConvolutionForm const& form : forms)
    for (Index const extent : {form.rows(), form.columns(), form.depth()})
      if (extent > max_int)
        return fmt::format("an index of the product has {} values; at most {}: split the batch", extent,
                           max_int);
  return {};
}

std::vector<ConvolutionForm> planned_forms(Problem const& problem, ConvolutionRecipe const& recipe) {
  if (recipe.algorithm == ConvolutionAlgorithm::unroll_gemm)
    return unrolled_forms(problem, std::get<UnrollRecipe>(recipe.own));
  std::vector<ConvolutionForm> forms =
      unified_forms(with_filter_copied(problem, filter_repack(recipe.product)), !recipe.is_direct());
  if (recipe.stepwise)
    for (ConvolutionForm& form : forms) form = stepwise(form, recipe.product.policy.block_k);
  return forms;
}

CanonicalGemm gemm_view(ConvolutionForm const& form) {
  CanonicalGemm view;
  view.m = form.rows();
  view.n = form.columns();
  view.k = form.depth();
  view.batch = form.groups;
  view.swapped = form.swapped;
  view.a.type = form.a.type;
  view.b.type = form.b.type;
  view.d.type = form.d.type;
  view.d.width = form.d.width;
  view.sum = form.sum;
  view.evaluation = form.evaluation;
  view.identity = form.identity;
  return view;
}

std::vector<Candidate<Problem>> convolution_candidates(Backend) {
  auto* const prepare = &prepare_on<&prepare_program>;
  Candidate<Problem> general{"implicit_gemm", {}, nullptr, prepare};
  general.offer = &offer_with_bias<&implicit_gemm>;
  general.batch_invariant = true;
  Candidate<Problem> windows{"warp_specialized", {}, nullptr, prepare};
  windows.offer = &offer_with_bias<&warp_specialized_convolution>;
  Candidate<Problem> phases{"dgrad_phases", {}, nullptr, prepare};
  phases.offer = &offer_with_bias<&dgrad_phases>;
  Candidate<Problem> simple{"direct", {}, nullptr, prepare};
  simple.offer = &offer_with_bias<&direct>;
  Candidate<Problem> unrolled{"unroll_gemm", {}, nullptr, prepare};
  unrolled.offer = &offer_with_bias<&unroll_gemm>;
  Candidate<Problem> tiled{"direct_tiled", {}, nullptr, prepare};
  tiled.offer = &offer_with_bias<&direct_tiled>;
  Candidate<Problem> few_channels{"dgrad_small_c", {}, nullptr, prepare};
  few_channels.offer = &offer_with_bias<&dgrad_small_c>;
  Candidate<Problem> first_layer{"fprop_small_c", {}, nullptr, prepare};
  first_layer.offer = &offer_with_bias<&fprop_small_c>;
  Candidate<Problem> first_gradient{"wgrad_small_c", {}, nullptr, prepare};
  first_gradient.offer = &offer_with_bias<&wgrad_small_c>;
  Candidate<Problem> pointwise_gradient{"wgrad_pointwise", {}, nullptr, prepare};
  pointwise_gradient.offer = &offer_with_bias<&wgrad_pointwise>;
  Candidate<Problem> by_channel{"depthwise", {}, nullptr, prepare};
  by_channel.offer = &offer_with_bias<&depthwise>;
  Candidate<Problem> walking{"depthwise_rows", {}, nullptr, prepare};
  walking.offer = &offer_with_bias<&depthwise_rows>;
  Candidate<Problem> of_groups{"grouped", {}, nullptr, prepare};
  of_groups.offer = &offer_with_bias<&grouped>;
  Candidate<Problem> by_wgmma{"group_windows", {}, nullptr, prepare};
  by_wgmma.offer = &offer_with_bias<&group_windows>;
  Candidate<Problem> in_shared{"image_windows", {}, nullptr, prepare};
  in_shared.offer = &offer_with_bias<&image_windows>;
  Candidate<Problem> by_group{"group_slices", {}, nullptr, &prepare_on<&prepare_group_slices>};
  by_group.offer = &offer_with_bias<&group_slices>;
  Candidate<Problem> product{"gemm", {}, nullptr, &prepare_on<&prepare_plain_gemm>};
  product.offer = &offer_with_bias<&plain_gemm>;
  Candidate<Problem> by_image{"image_products", {}, nullptr, &prepare_on<&prepare_image_products>};
  by_image.offer = &offer_with_bias<&image_products>;
  Candidate<Problem> by_patch{"patch_gemm", {}, nullptr, &prepare_on<&prepare_patch_gemm>};
  by_patch.offer = &offer_with_bias<&patch_gemm>;
  Candidate<Problem> transformed{"winograd", {}, nullptr, prepare};
  transformed.offer = &offer_with_bias<&winograd>;
  Candidate<Problem> by_frequency{"fft", {}, nullptr, prepare};
  by_frequency.offer = &offer_with_bias<&fft>;
  Candidate<Problem> all_taps{"wgrad_taps", {}, nullptr, prepare};
  all_taps.offer = &offer_with_bias<&wgrad_taps>;
  Candidate<Problem> slices{"image_slices", {}, nullptr, &prepare_on<&prepare_image_slices>};
  slices.offer = &offer_with_bias<&image_slices>;
  slices.batch_invariant = true;
  Candidate<Problem> copies{"channels_last", {}, nullptr, &prepare_on<&prepare_channels_last>};
  copies.offer = &offer_with_bias<&channels_last>;
  copies.batch_invariant = true;
  return {
      product,         by_image,  by_patch, pointwise_gradient, first_gradient, all_taps, windows, in_shared,
      phases,          general,   copies,   transformed,        by_frequency,   unrolled, walking, by_channel,
      by_wgmma,        of_groups, by_group, few_channels,       first_layer,    tiled,    simple,  slices,
      bias_candidate()};
}

}  // namespace cosmati::plan
