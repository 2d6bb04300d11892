// Shape choice, predicted time and program of wgrad_small_c.
#include "src/plan/conv/filter/wgrad_small_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/ops/architecture.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter/filter_gradient.h"
#include "src/plan/conv/filter/wgrad_direct.h"
#include "src/plan/conv/fprop_small_c.h"
#include "src/plan/conv/mirrored.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr unsigned sum_threads = 512, lanes_of_sum = 32;  // WgradSmallCTraits

// 16-bit channels that fill their places, in matrices of eight columns.
constexpr int max_channels = 280;
// Filters are few if they are at most these, and x has so many times as many channels. 36 filters of 256
// channels took 191 us, warp_specialized 171 (H200).
constexpr int few_filters = 32, few = 4;

// Filters of one tap are left to wgrad_pointwise, which copies with fewer instructions.
bool is_copied(Problem const& p, Device const& device) {
  return size_of(p.x.type) == 2 && !has_one_tap(p) && has_copied_pixels(p, device);
}

// The problem as the kernel computes it.
Problem as_computed(Problem const& problem) {
  return exchanges_images(problem) ? mirrored(problem) : problem;
}

// The product, whose result begins at the first tap.
ConvolutionForm computed_form(Problem const& problem) {
  ConvolutionForm form = forms_of(as_computed(problem)).front();
  if (exchanges_images(problem)) form.d.base += offset_of_last_tap(problem.w);
  return form;
}

// `p` is the problem as the kernel computes it, and `dy` the name of its y.
std::string wgrad_small_c_violation(Problem const& p, char const* dy, Device const& device) {
  if (std::string sentence = problem_violation(p, device.backend); !sentence.empty()) return sentence;
  DataType const type = p.x.type;
  if (p.groups != 1) return fmt::format("{} groups; expected 1", p.groups);
  bool const copied = is_copied(p, device);
  if (copied ? p.x.extent(1) > max_channels : p.x.extent(1) * size_of(type) > max_vector_bytes)
    return fmt::format(
        "{} channels of {} bytes; at most {} bytes, or, with several taps, {} 16-bit channels in contiguous and "
        "aligned units of two",
        p.x.extent(1), size_of(type), max_vector_bytes, max_channels);
  if (p.dilation[0] != 1 || p.dilation[1] != 1) return "dilated taps are not adjacent";
  if (type != p.y.type || size_of(type) < 2 || !mma_takes(type, type, accumulator_type(type, type)))
    return fmt::format("x and dy must both be tf32, f16 or bf16, not {} and {}", name_of(type),
                       name_of(p.y.type));
  if (accumulator_type(type, type) != DataType::f32) return "sums must be f32";
  if (std::string sentence = mma_device_violation(type, device.gpu); !sentence.empty()) return sentence;
  if (device.backend == Backend::emulator && type != DataType::f16 && type != DataType::tf32)
    return fmt::format("the emulator has this kernel for f16 and tf32, not for {}", name_of(type));
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y})
    if (tensor->layout.size() == 0) return fmt::format("{} has no elements", to_string(*tensor));
  if (p.y.layout.stride[1] != 1 && p.y.extent(1) > 1)
    return fmt::format("{}: its channels are {} elements apart; expected 1 (channels last)", dy,
                       p.y.layout.stride[1]);
  if (unit_of_channels(p.y) == 0)
    return fmt::format("{}: the channels of {} are not in units of 4 bytes", dy, to_string(p.y));
  for (TensorDescription const* tensor : {&p.x, &p.y})
    for (int d : {1, 2, 3})
      if (tensor->layout.stride[d] < 0 || tensor->layout.stride[d] * tensor->extent(d) > max_int / 4)
        return fmt::format(
            "{}: strides within an image must not be negative, and its offsets must fit in 29 bits",
            to_string(*tensor));
  if (p.w.layout.size() > max_int / 64 || p.y.extent(0) * p.y.extent(2) * p.y.extent(3) > max_int)
    return "too many elements of dw, or pixels of dy";
  return {};
}

class WgradSmallCSearch {
 public:
  WgradSmallCSearch(Problem const& problem, Device const& device)
      : problem_(problem), gpu_(device.gpu), is_emulated_(device.backend == Backend::emulator) {
    FpropSmallCShape& tile = base_.tile;
    tile.rows = {to_int(problem.stride[0]), to_int(problem.w.extent(2))};
    tile.columns = {to_int(problem.stride[1]), to_int(problem.w.extent(3))};
    tile.channels = to_int(problem.x.extent(1));
    size_ = size_of(problem.x.type);
    // Matrices of 16-bit elements need windows of adjacent outputs that begin at multiples of 16 bytes.
    tile.async = is_copied(problem, device);
    if (tile.async) tile.unit = unit_of_channels(problem.x);
    base_.gradient_unit = unit_of_channels(problem.y);
    tile.place = tile.async ? place_of_copies(problem)
                 : tile.channels <= 4 && (size_ == 4 || tile.columns.stride % 2 == 0) ? 4
                                                                                      : 8;
    if (!tile.async && tile.place == 4) tile.columns.taps += tile.columns.taps % 2;
  }

  WgradSmallCPlan best() {
    int const max_filters = base_.tile.async ? 128 : 64;  // of a block
    best_.refusal = "no tile fits in registers and shared memory";
    Index const filters = problem_.w.extent(0);
    for (int const warps : {unfixed_fprop_warps, 4, 8})
      for (int const fragments : {1, 2, 4})
        for (int const warps_of_filters : {1, 2, 4}) {
          WgradSmallCShape shape = base_;
          shape.tile.warps = warps, shape.tile.fragments = fragments;
          shape.warps_of_filters = warps_of_filters;
          bool const is_catalogued = warps == unfixed_fprop_warps && fragments == 1 && warps_of_filters == 1;
          bool const fits =
              shape.filters() <= max_filters && (shape.filters() == 16 || shape.filters() < filters * 2);
          if (is_emulated_ ? is_catalogued : warps != unfixed_fprop_warps && fits) try_taps(shape);
        }
    return best_;
  }

 private:
  // Divides the rows of taps into as few bands as registers permit.
  void try_taps(WgradSmallCShape shape) {
    constexpr int max_fragments = 36;
    int const most = is_emulated_ ? unfixed_wgrad_tiles : max_fragments / shape.tile.fragments - 1;
    if (shape.tiles_of_row() > most) return;
    Index const rows = problem_.w.extent(2), bands = ceiling_divide(rows, most / shape.tiles_of_row());
    shape.tile.rows.taps = to_int(ceiling_divide(rows, bands));
    for (int const outputs : {64, 128, 256, 512})
      for_small_c_tiles(problem_, false, outputs, [&](int down, int across) {
        shape.tile.down = down, shape.tile.across = across;
        try_shape(shape);
      });
  }

  void try_shape(WgradSmallCShape shape) {
    constexpr int max_registers = 240;
    FpropSmallCShape& tile = shape.tile;
    if (patch_pixels(tile) > max_patch_pixels) return;
    int const sums = tile.fragments * (shape.tiles() + 1) * 4;
    int const loaded = tile.async ? 8 : tile.pixels() * tile.place * size_ / 4;
    int const registers = (48 + sums + tile.fragments * 4 + loaded + 7) / 8 * 8;
    if (is_emulated_ && !tile.async && tile.pixels() > unfixed_fprop_pixels) return;
    int const bytes = shape.shared_bytes(size_, is_emulated_ ? unfixed_wgrad_tiles : shape.tiles());
    if (registers > max_registers || bytes > gpu_.shared_bytes_per_block) return;
    tile.blocks = resident_blocks(gpu_, tile.threads(), registers, bytes);
    if (tile.blocks < 1) return;
    WgradSmallCPlan plan;
    plan.shape = shape;
    plan.bands = ceiling_divide(problem_.w.extent(0), shape.filters());
    plan.tap_bands = ceiling_divide(problem_.w.extent(2), tile.rows.taps);
    Index const tiles = small_c_window(problem_, tile).tiles;
    Index const resident = Index{tile.blocks} * (is_emulated_ ? 2 : gpu_.multiprocessors);
    plan.blocks = std::min(tiles, std::max<Index>(1, resident / (plan.bands * plan.tap_bands)));
    constexpr Index max_grid_y = 65535;
    if (std::max(plan.bands, plan.tap_bands) > max_grid_y || plan.sums(shape.tiles()) * plan.blocks > max_int)
      return;
    plan.seconds = predicted(plan, to_double(tiles));
    if (best_.refusal.empty() && plan.seconds >= best_.seconds) return;
    best_ = plan;
  }

  // Clocks of a step's mma, of an access to shared memory, of a tile, and of a tile of columns when the
  // warps' sums are added; issue slots of a pixel and of 16 bytes of dy, the increase with 16 warps, and the
  // share of the shorter of memory and computing.
  struct Costs {
    double mma, access, tile, turn, pixel, piece, few_warps, overlap, launches_seconds;
  };
  // Fitted on an H200: to 38 measurements of 13 layers with copied pixels, with a standard deviation of 18 %,
  // and to eight first layers in bf16 (docs/decisions/0026).
  Costs costs(FpropSmallCShape const& tile) const {
    if (!tile.async) return {2, 0.4, 0, 0, 13 + 9.1 * tile.channels, 15.6, 0.06, 0.5, 1e-5};
    double const units = static_cast<double>(tile.place * size_) / tile.unit;
    return {0.5, 0.2, 300, 123, 100 * units, 100, 0, 0.5, 5e-6};
  }

  // Predicted seconds, with the same terms as for fprop_small_c.
  double predicted(WgradSmallCPlan const& plan, double tiles) const {
    WgradSmallCShape const& shape = plan.shape;
    FpropSmallCShape const& tile = shape.tile;
    Costs const cost = costs(tile);
    double const steps = shape.steps(size_), columns = shape.tiles() + 1;
    double const tensor = steps * shape.filters() / 16 * columns * small_c_mma_clocks(cost.mma, gpu_);
    double const shared = steps * shape.warps_of_filters * (tile.fragments * 4 + columns * 2) * cost.access;
    double const pieces = shape.outputs_of_steps(size_) * shape.filters() * size_ / shape.gradient_unit;
    double const moves = (tile.patch() * cost.pixel + pieces * cost.piece) / 32 / 4;
    double const others = to_double(plan.bands * plan.tap_bands), blocks = to_double(plan.blocks);
    double const together =
        std::clamp(blocks * others / gpu_.multiprocessors, 1.0, static_cast<double>(tile.blocks));
    double const few_warps = cost.few_warps * std::pow(16 / (together * tile.warps), 2);
    double const clocks = (tensor + shared + moves) * (1 + few_warps) * together + cost.tile;
    double const last = cost.turn * shape.warps_of_outputs() * columns * tile.fragments;
    double const compute = (std::ceil(tiles / blocks) * clocks + last) / gpu_.clock_hertz;
    double const bytes = to_double(problem_.x.layout.size()) * size_ * others +
                         to_double(problem_.y.layout.size()) * size_ * to_double(plan.tap_bands);
    double const memory = bytes / (0.8 * gpu_.memory_bytes_per_second);
    double const partials =
        to_double(plan.sums(shape.tiles())) * blocks * 4 * 2 / (0.5 * gpu_.memory_bytes_per_second);
    return cost.launches_seconds + partials + std::max(compute, memory) +
           cost.overlap * std::min(compute, memory);
  }

  Problem const& problem_;
  Gpu const& gpu_;
  bool is_emulated_;
  int size_ = 2;
  WgradSmallCShape base_;
  WgradSmallCPlan best_;
};

int column_tiles_of(WgradSmallCShape const& shape, bool fixed) {
  return fixed ? shape.tiles() : unfixed_wgrad_tiles;
}

}  // namespace

bool exchanges_images(Problem const& p) {
  if (!mirror_violation(p).empty()) return false;
  Index const channels = p.y.extent(1), bytes = channels * size_of(p.y.type);
  if (bytes <= max_vector_bytes) return channels < p.x.extent(1);
  return size_of(p.y.type) == 2 && channels <= few_filters && channels * few <= p.x.extent(1) &&
         unit_of_channels(p.x) > 0 && unit_of_channels(p.y) > 0;
}

WgradSmallCPlan wgrad_small_c_plan(Problem const& problem, Device const& device) {
  WgradSmallCPlan plan;
  if (problem.direction != ConvolutionDirection::filter) {
    plan.refusal = "computes filter gradients only";
    return plan;
  }
  Problem const computed = as_computed(problem);
  plan.refusal = wgrad_small_c_violation(computed, exchanges_images(problem) ? "x" : "dy", device);
  return plan.refusal.empty() ? WgradSmallCSearch(computed, device).best() : plan;
}

std::string WgradSmallCTraits::print() const {
  return fmt::format("WgradSmallCTraits<WgradSmallCShape{{{}, {}, {}}}, {}, {}, {}, {},\n{},\n{}>",
                     plan::print(shape.tile), shape.warps_of_filters, shape.gradient_unit, column_tiles,
                     fixed, swapped, name_of(type), epilogue, destination);
}

program::Program wgrad_small_c_program(Plan<Problem> const& plan) {
  Problem const problem = as_computed(plan.problem);
  WgradSmallCPlan const planned = wgrad_small_c_plan(plan.problem, plan.device);
  bool const bias = makes_bias_gradient(plan.problem, plan.recipe),
             exchanges = exchanges_images(plan.problem);
  ConvolutionForm const form = computed_form(plan.problem);
  program::Workspace workspace;
  workspace.add("partial sums", plan.recipe.product_workspace());
  ConvolutionProgram made(plan, std::move(workspace));
  bool const fixed = !made.is_emulated();
  int const column_tiles = column_tiles_of(planned.shape, fixed);
  KernelTypes const host = emulated_types(DataType::f32);
  WgradSmallCTraits const traits{
      fixed ? planned.shape
            : emulated_wgrad_small_c_shape(planned.shape.tile.place, planned.shape.tile.async),
      column_tiles,
      fixed,
      form.image_is_a,
      problem.x.type,
      fixed ? epilogue_text(form) : host.epilogue,
      fixed ? destination_text(form) : host.destination};
  WgradSmallCArguments all;
  all.window = small_c_window(problem, planned.shape.tile);
  all.gradient_image = stride_of(problem.y, 0);
  all.gradient_row = to_int(stride_of(problem.y, 2)), all.gradient_column = to_int(stride_of(problem.y, 3));
  all.blocks = to_int(planned.blocks), all.tap_bands = to_int(planned.tap_bands);
  all.tap_rows = to_int(problem.w.extent(2)), all.tap_columns = to_int(problem.w.extent(3));
  all.channel_number = to_int(tap_digit(form, 'c').number);
  all.tap_row_number = to_int(tap_digit(form, 'r').number);
  all.tap_column_number = to_int(tap_digit(form, 's').number);
  all.bias_stride = bias ? problem.db.layout.stride[0] : 0;
  all.shape = planned.shape;
  auto const threads = static_cast<unsigned>(planned.shape.tile.threads());
  program::KernelSpec kernel{
      .headers = {"conv/small_c/wgrad_small_c_sum.h"},
      .entry = "wgrad_small_c_kernel",
      .traits = traits.print(),
      .asserted = {{"ComposedTraits::threads", threads},
                   {"sizeof(ComposedTraits::SumStorage)", sum_threads * sizeof(float)}},
      .threads = threads,
      .shared_bytes =
          static_cast<unsigned>(planned.shape.shared_bytes(size_of(problem.x.type), column_tiles))};
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = WgradSmallCParameters<Epilogue, Destination>;
    std::size_t const sums = made.add_kernel<Parameters>(kernel, form);
    kernel.entry = "wgrad_small_c_sum_kernel";
    kernel.threads = sum_threads;
    kernel.shared_bytes = sum_threads * sizeof(float);
    std::size_t const last = made.add_kernel<Parameters>(kernel, form);
    auto const fill = [all, form, bias, x = exchanges ? made.filter : made.image,
                       dy = exchanges ? made.image : made.filter](program::Run const& run, Parameters& to) {
      to.all = all;
      to.all.window.image = x.of(run);
      to.all.gradient = dy.of(run);
      to.all.partials = reinterpret_cast<float*>(run.workspace);
      to.all.bias = bias ? static_cast<float*>(run.tensors[3]) : nullptr;
      fill_destination(to.d, form.d, ConvolutionProgram::result(run));
      fill_epilogue(to.epilogue, form, run);
    };
    made.launch<Parameters>(sums, {planned.blocks, planned.bands, planned.tap_bands}, fill);
    made.launch<Parameters>(last, {ceiling_divide(planned.sums(column_tiles), lanes_of_sum)}, fill);
  });
  return std::move(made).finish();
}

Offer<Problem> wgrad_small_c(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  WgradSmallCPlan const plan = wgrad_small_c_plan(problem, device);
  offer.refusal = plan.refusal;
  if (!offer.refusal.empty()) return offer;
  int const column_tiles = column_tiles_of(plan.shape, device.backend != Backend::emulator);
  offer.workspace_bytes = static_cast<std::size_t>(plan.sums(column_tiles) * plan.blocks) * sizeof(float);
  FpropSmallCShape const& tile = plan.shape.tile;
  offer.recipe.algorithm = ConvolutionAlgorithm::wgrad_small_c;
  offer.recipe.product = product_recipe(computed_form(problem));
  offer.recipe.product.policy.multiply = Multiply::mma;
  offer.recipe.product.partial_bytes = offer.workspace_bytes;
  offer.recipe.product.predicted_seconds = offer.predicted_seconds = plan.seconds;
  offer.text = fmt::format(
      "{}mma, {}x{} outputs by {} filters and {} rows of taps, {} channels in {}, {} warps of {} fragments, {} "
      "bytes of shared memory, {} blocks per multiprocessor, sums of {} blocks added in a fixed order",
      exchanges_images(problem) ? "x and dy exchanged, " : "", tile.down, tile.across, plan.shape.filters(),
      tile.rows.taps, tile.channels, tile.place, tile.warps, tile.fragments,
      plan.shape.shared_bytes(size_of(problem.x.type), column_tiles), tile.blocks, plan.blocks);
  return offer;
}

}  // namespace cosmati::plan
