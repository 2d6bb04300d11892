// Shape choice, predicted time and program of fprop_small_c.
#include "src/plan/conv/fprop_small_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "src/ops/architecture.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/depthwise_rows.h"
#include "src/plan/conv/mirrored.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// Channels that are copied. Of four bytes, 24 were faster than a product, 32 and 48 were not (3x3, H200).
constexpr int max_pixel_bytes(int size) { return size == 2 ? 1024 : 192; }

// The forward convolution that the kernel computes: for a data gradient, that of dy.
Problem as_forward(Problem const& problem) {
  return problem.direction == ConvolutionDirection::data ? mirrored(problem) : problem;
}

// The forward convolution in the form in which the kernel computes it.
Problem as_computed(Problem const& problem) {
  Problem const forward = as_forward(problem);
  return is_flat(forward) ? flattened(forward) : forward;
}

FilterUnits filter_units(Problem const& p) {
  Index const of_unit = max_vector_bytes / size_of(p.w.type);
  if (p.w.alignment % max_vector_bytes != 0) return FilterUnits::none;
  auto const has_units_along = [&](int contiguous) {
    bool whole = p.w.layout.stride[contiguous] == 1 && p.w.extent(contiguous) % of_unit == 0;
    for (int d = 0; d < 4; ++d)
      whole = whole && (d == contiguous || p.w.extent(d) == 1 || p.w.layout.stride[d] % of_unit == 0);
    return whole;
  };
  return has_units_along(1)   ? FilterUnits::channels
         : has_units_along(0) ? FilterUnits::filters
                              : FilterUnits::none;
}

// `p` is a forward convolution, possibly derived from a data gradient.
std::string fprop_small_c_violation(Problem const& p, Device const& device) {
  bool const of_gradient = p.direction == ConvolutionDirection::data;
  char const *const x = of_gradient ? "dy" : "x", *const y = of_gradient ? "dx" : "y";
  if (std::string sentence = problem_violation(p, device.backend); !sentence.empty()) return sentence;
  DataType const type = p.x.type;
  if (p.groups != 1) return fmt::format("{} groups; tensor cores sum over all channels of x", p.groups);
  bool const copied = has_copied_pixels(p, device);
  if (Index const bytes = p.x.extent(1) * size_of(type);
      bytes > (copied ? max_pixel_bytes(size_of(type)) : max_vector_bytes))
    return fmt::format(
        "{} channels of {} bytes are summed; at most {} bytes, or {} in contiguous and aligned units of 4 bytes "
        "(with one tap: of 16, of pixels at equal distances, each with an output)",
        p.x.extent(1), size_of(type), max_vector_bytes, max_pixel_bytes(size_of(type)));
  if (copied && has_one_tap(p) && size_of(type) == 4)
    return "a filter of one tap and factors of four bytes; the matrix product is faster";
  if (p.dilation[0] != 1 || p.dilation[1] != 1) return "dilated taps are not adjacent";
  if (type != p.w.type || size_of(type) < 2 || !mma_takes(type, type, accumulator_type(type, type)))
    return fmt::format("both factors must be tf32, f16 or bf16, not {} and {}", name_of(type),
                       name_of(p.w.type));
  if (accumulator_type(type, type) != DataType::f32) return "sums must be f32";
  if (std::string sentence = mma_device_violation(type, device.gpu); !sentence.empty()) return sentence;
  if (device.backend == Backend::emulator) {
    if (!emulator::multiplies_convolution(MainLoop::multistage, Multiply::mma, type, type))
      return fmt::format("the emulator has this kernel for f16 and tf32, not for {}", name_of(type));
    if (!copied && p.x.extent(1) > unfixed_fprop_place)
      return fmt::format("{} channels; the emulator has this kernel for at most {}, and for {} and {}",
                         p.x.extent(1), unfixed_fprop_place, unfixed_fprop_bytes[0] / size_of(type),
                         unfixed_fprop_bytes[1] / size_of(type));
  }
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y})
    if (tensor->layout.size() == 0) return fmt::format("{} has no elements", to_string(*tensor));
  if (p.y.extent(1) > 1 && p.y.layout.stride[1] != 1)
    return fmt::format("{}: its channels are {} elements apart; expected 1 (channels last)", y,
                       p.y.layout.stride[1]);
  for (int d : {1, 2, 3})
    if (p.x.layout.stride[d] < 0 || p.x.layout.stride[d] * p.x.extent(d) > max_int / 4)
      return fmt::format(
          "{}: a step along dimension {} is {} elements; offsets within an image must fit in 29 bits", x, d,
          p.x.layout.stride[d]);
  if (p.y.extent(0) * p.y.extent(2) * p.y.extent(3) > max_int) return "too many pixels: split the batch";
  return {};
}

struct FpropTiles {
  Index down, across;  // of an image
};
FpropTiles fprop_tiles(Problem const& p, FpropSmallCShape const& shape) {
  return {ceiling_divide(p.y.extent(2), shape.down), ceiling_divide(p.y.extent(3), shape.across)};
}

class FpropSmallCSearch {
 public:
  FpropSmallCSearch(Problem const& problem, Device const& device)
      : problem_(problem), gpu_(device.gpu), is_emulated_(device.backend == Backend::emulator) {
    auto const axis = [&](int i) {
      return FpropAxis{to_int(problem.stride[i]), to_int(problem.w.extent(2 + i))};
    };
    size_ = size_of(problem.x.type);
    base_.rows = axis(0), base_.columns = axis(1);
    base_.channels = to_int(problem.x.extent(1));
    base_.async = has_copied_pixels(problem, device);
    if (base_.async) base_.filter_units = filter_units(problem);
    if (base_.async && !has_one_tap(problem)) base_.unit = unit_of_channels(problem.x);
    base_.place =
        base_.async
            ? place_of_copies(problem)
            : std::max(4 / size_, static_cast<int>(std::bit_ceil(static_cast<unsigned>(base_.channels))));
    if (is_emulated_ && !base_.async) base_.place = unfixed_fprop_place;
  }

  FpropSmallCPlan best() {
    best_.refusal = "no tile fits in registers and shared memory";
    Index const bands_of_all =
        std::max<Index>(2, ceiling_divide(problem_.w.extent(0), FpropSmallCShape::band));
    int const most = base_.async && size_ == 2 ? 8 : 2;
    for (int const bands : {1, 2, 3, 4, 5, 6, 7, 8})
      for (int const warps : {unfixed_fprop_warps, 4, 8})
        for (int const fragments : {1, 2, 4}) {
          FpropSmallCShape shape = base_;
          shape.bands = bands, shape.warps = warps, shape.fragments = fragments;
          shape.result_bytes = result_bytes(bands);
          bool const is_catalogued = warps == unfixed_fprop_warps && fragments == 1 && bands == 1;
          bool const fits = warps != unfixed_fprop_warps && bands <= most && bands <= bands_of_all;
          if (is_emulated_ ? is_catalogued : fits) try_tiles(shape);
        }
    return best_;
  }

 private:
  // Not 0: blocks compute whole pixels of y, which are adjacent but not whole units of 16 bytes.
  int result_bytes(int bands) const {
    TensorDescription const& y = problem_.y;
    Index const channels = y.extent(1), bytes = channels * size_of(y.type);
    bool adjacent = is_flat(problem_) && y.layout.stride[3] == channels;
    if (is_emulated_)
      adjacent = adjacent && base_.place == unfixed_fprop_bytes[0] / 2 && y.type == DataType::f16;
    return adjacent && channels <= bands * FpropSmallCShape::band && bytes % max_vector_bytes != 0 &&
                   y.alignment % max_vector_bytes == 0
               ? to_int(bytes)
               : 0;
  }

  void try_tiles(FpropSmallCShape shape) {
    for_small_c_tiles(problem_, is_flat(problem_), shape.warps * shape.fragments * 16,
                      [&](int down, int across) {
                        shape.down = down, shape.across = across;
                        try_shape(shape);
                      });
  }

  void try_shape(FpropSmallCShape shape) {
    constexpr int max_registers = 240;
    if (patch_pixels(shape) > max_patch_pixels) return;
    int const loaded = shape.async ? 8 : shape.pixels() * shape.place * size_ / 4;
    int const registers = (32 + loaded + shape.fragments * (16 * shape.bands + 8) + 7) / 8 * 8;
    if (is_emulated_ && !shape.async && shape.pixels() > unfixed_fprop_pixels) return;
    int const bytes = shape.shared_bytes(size_);
    if (registers > max_registers || bytes > gpu_.shared_bytes_per_block) return;
    shape.blocks = resident_blocks(gpu_, shape.threads(), registers, bytes);
    if (shape.blocks < 1) return;
    FpropTiles const tiles = fprop_tiles(problem_, shape);
    Index const all = problem_.x.extent(0) * tiles.down * tiles.across,
                filters = ceiling_divide(problem_.w.extent(0), Index{shape.bands} * FpropSmallCShape::band);
    if (all > max_int || filters > max_grid_y) return;
    Index const resident = Index{shape.blocks} * (is_emulated_ ? 2 : gpu_.multiprocessors);
    Index const blocks = std::min(all, std::max<Index>(1, resident / filters));
    double const seconds =
        predicted(shape, static_cast<double>(all), static_cast<double>(blocks), static_cast<double>(filters));
    if (best_.refusal.empty() && seconds >= best_.seconds) return;
    best_ = {{}, shape, all, blocks, filters, seconds};
  }

  // Clocks of a step's mma, of an access to shared memory and of a tile by a block alone, issue slots of a
  // pixel and of a run of eight results, clocks of a word of the filter, the increase with 16 warps, and
  // shares: of memory bandwidth, of x that is read again for other filters, and of the shorter of memory and
  // computing.
  struct Costs {
    double mma, access, tile, pixel, run, filter, few_warps, bandwidth, again, overlap, launch_seconds;
  };
  // Fitted on an H200: to 136 measurements of 20 layers with copied pixels in 16 bits, with a standard
  // deviation of 11 %, and to ten other layers, within 15 % (docs/decisions/0026).
  Costs costs(FpropSmallCShape const& shape) const {
    double const units = static_cast<double>(shape.place * size_) / shape.unit;
    if (!shape.async) return {1.8, 0.4, 0, 13 + 9.1 * shape.channels, 91, 180, 0.15, 0.8, 1, 0.15, 5e-6};
    if (size_ == 4) return {2.3, 0.52, 0, 20 * units, 118, 180, 0.15, 0.8, 1, 0.15, 5e-6};
    return {1.6, 0.45, 2240, 7.4 * units, 12.5, 230, 0.042, 0.95, 0.6, 0.16, 3.8e-6};
  }

  // Predicted seconds: tensor cores, shared memory and the copies overlap little, and less with few warps.
  double predicted(FpropSmallCShape const& shape, double tiles, double blocks, double parts) const {
    Costs const cost = costs(shape);
    double const steps = shape.rows.taps * shape.steps(size_), columns = 4 * shape.bands;
    double const fragments = shape.warps * shape.fragments, words = shape.is_flat(size_) ? 16 : 4;
    double const tensor = fragments * steps * columns * small_c_mma_clocks(cost.mma, gpu_);
    double const shared = steps * (fragments * words + shape.warps * columns * 2) * cost.access;
    double const moves = (shape.patch() * cost.pixel + shape.outputs() * columns * cost.run) / 32 / 4;
    double const together =
        std::clamp(blocks * parts / gpu_.multiprocessors, 1.0, static_cast<double>(shape.blocks));
    double const few_warps = cost.few_warps * std::pow(16 / (together * shape.warps), 2);
    double const clocks = (tensor + shared + moves) * (1 + few_warps) * together + cost.tile;
    double const compute = std::ceil(tiles / blocks) * clocks / gpu_.clock_hertz;
    // Blocks of other filters find part of x in L2, unless it is larger.
    double const x_bytes = static_cast<double>(problem_.x.layout.size() * size_);
    bool const exceeds_l2 = gpu_.l2_bytes > 0 && x_bytes > static_cast<double>(gpu_.l2_bytes);
    double const again = exceeds_l2 ? 1 : cost.again;
    double const of_x = x_bytes * (1 + again * (parts - 1));
    double const bytes = of_x + static_cast<double>(problem_.y.layout.size() * size_of(problem_.y.type));
    double const memory = bytes / (cost.bandwidth * gpu_.memory_bytes_per_second);
    double const filter = shape.filter_bytes(size_) / 4.0 / shape.threads() * cost.filter / gpu_.clock_hertz;
    return cost.launch_seconds + filter + std::max(compute, memory) +
           cost.overlap * std::min(compute, memory);
  }

  static constexpr Index max_grid_y = 65535;
  Problem const& problem_;
  Gpu const& gpu_;
  bool is_emulated_;
  int size_ = 2;
  FpropSmallCShape base_;
  FpropSmallCPlan best_;
};

// Returns the arguments without pointers.
FpropSmallCArguments arguments_of(Problem const& p, FpropSmallCPlan const& plan,
                                  ConvolutionForm const& form) {
  FpropSmallCArguments window = small_c_window(p, plan.shape);
  window.filter_output = stride_of(p.w, 0), window.filter_input = stride_of(p.w, 1);
  window.filter_row = stride_of(p.w, 2), window.filter_column = stride_of(p.w, 3);
  set_pixel_numbers(window, form);
  if (is_flat(p)) window.number_column = 1;
  return window;
}

// One product of pixels by filters.
ConvolutionForm form_of(Problem const& problem) {
  ConvolutionForm form = forms_of(problem).front();
  return form.image_is_a ? form : exchanged(form);
}

// The elements between the pixels of images; 0 if they are not at equal distances.
Index distance_of_pixels(Layout const& layout) {
  Index distance = 0, pixels = 1;
  for (int d : {3, 2, 0}) {
    if (layout.shape[d] == 1) continue;
    if (distance == 0) distance = layout.stride[d];
    if (layout.stride[d] != distance * pixels) return 0;
    pixels *= layout.shape[d];
  }
  return pixels == 1 ? std::max<Index>(1, layout.shape[1]) : distance;
}

// Whether pixels of images, and images, follow one another.
bool is_in_order(Layout const& layout) {
  Index before = std::numeric_limits<Index>::max();
  for (int d : {0, 2, 3}) {
    if (layout.shape[d] == 1) continue;
    if (layout.stride[d] > before) return false;
    before = layout.stride[d];
  }
  return true;
}

// Whether x's channels are contiguous in units; with a filter of one tap, only in units of 16 bytes of a flat
// problem. Channels of at most 16 bytes that are not such a unit are loaded one by one.
bool has_units(Problem const& p, Device const& device) {
  int const unit = unit_of_channels(p.x);
  if (device.backend == Backend::emulator) {
    int const bytes = place_of_copies(p) * size_of(p.x.type);
    if (std::ranges::find(unfixed_fprop_bytes, bytes) == std::end(unfixed_fprop_bytes)) return false;
  }
  if (has_one_tap(p)) return unit == max_vector_bytes && is_flat(p);
  return unit == max_vector_bytes || (unit > 0 && p.x.extent(1) * size_of(p.x.type) > max_vector_bytes);
}

// Whether x is one row of adjacent pixels whose channels are not whole units of 16 bytes.
bool has_flat_pixels(Problem const& problem, Device const& device) {
  if (!is_flat(problem)) return false;
  Problem const p = flattened(problem);
  Index const channels = p.x.extent(1);
  if (device.backend == Backend::emulator && channels != unfixed_flat_place) return false;
  return size_of(p.x.type) == 2 && p.x.layout.stride[1] == 1 && p.x.layout.stride[3] == channels &&
         p.x.alignment % max_vector_bytes == 0 && channels * size_of(p.x.type) % max_vector_bytes != 0;
}

}  // namespace

int unit_of_channels(TensorDescription const& tensor) {
  constexpr int least = 4;
  int const bytes = channel_vector(tensor) * size_of(tensor.type);
  return tensor.layout.stride[1] == 1 && bytes >= least ? bytes : 0;
}

int place_of_copies(Problem const& p) {
  Index const of_unit = max_vector_bytes / size_of(p.x.type), channels = p.x.extent(1);
  return to_int(has_one_tap(p) ? channels : ceiling_divide(channels, of_unit) * of_unit);
}

bool has_copied_pixels(Problem const& problem, Device const& device) {
  return has_units(problem, device) || has_flat_pixels(problem, device);
}

bool is_flat(Problem const& p) {
  bool flat = has_one_tap(p);
  for (int i : {0, 1})
    flat = flat && p.pad_begin[i] == 0 && p.y.extent(2 + i) == p.x.extent(2 + i) &&
           (p.stride[i] == 1 || p.x.extent(2 + i) == 1);
  Index const distance = distance_of_pixels(p.x.layout),
              pixels = p.x.extent(0) * p.x.extent(2) * p.x.extent(3);
  return flat && distance > 0 && pixels > 0 && distance <= max_int / 4 / pixels && is_in_order(p.y.layout);
}

Problem flattened(Problem p) {
  for (TensorDescription* tensor : {&p.x, &p.y}) {
    Layout& layout = tensor->layout;
    Index const distance = distance_of_pixels(layout);
    layout.shape[3] *= layout.shape[0] * layout.shape[2];
    layout.shape[0] = layout.shape[2] = 1;
    layout.stride[0] = layout.stride[2] = 0, layout.stride[3] = distance;
  }
  p.stride[0] = p.stride[1] = 1;
  return p;
}

double small_c_mma_clocks(double on_h200, Gpu const& gpu) {
  constexpr double products = 2048;  // of an m16n8k16
  return on_h200 + products / mma_rate(gpu, DataType::f32) - products / mma_rate_of_h200;
}

Index patch_pixels(FpropSmallCShape const& shape) {
  auto const reach = [](FpropAxis const& axis, int outputs) {
    return (outputs - 1) * Index{axis.stride} + axis.taps;
  };
  Index const rows = reach(shape.rows, shape.down), columns = reach(shape.columns, shape.across);
  return std::min(rows, max_patch_pixels) * std::min(columns, max_patch_pixels);
}

FpropSmallCArguments small_c_window(Problem const& p, FpropSmallCShape const& shape) {
  FpropSmallCArguments window;
  window.image_stride = stride_of(p.x, 0);
  window.image_channel = to_int(stride_of(p.x, 1));
  window.image_row = to_int(stride_of(p.x, 2)), window.image_column = to_int(stride_of(p.x, 3));
  window.image_rows = to_int(p.x.extent(2)), window.image_columns = to_int(p.x.extent(3));
  window.top = to_int(p.pad_begin[0]), window.left = to_int(p.pad_begin[1]);
  window.filters = to_int(p.w.extent(0));
  window.height = to_int(p.y.extent(2)), window.width = to_int(p.y.extent(3));
  FpropTiles const tiles = fprop_tiles(p, shape);
  window.tiles_down = Divisor(tiles.down), window.tiles_across = Divisor(tiles.across);
  window.tiles = to_int(p.x.extent(0) * tiles.down * tiles.across);
  window.shape = shape;
  return window;
}

FpropSmallCPlan fprop_small_c_plan(Problem const& problem, Device const& device) {
  FpropSmallCPlan plan;
  if (problem.direction == ConvolutionDirection::filter || problem.direction == ConvolutionDirection::bias)
    plan.refusal = "computes forward convolutions, and data gradients with stride 1";
  else if (problem.direction == ConvolutionDirection::data)
    plan.refusal = mirror_violation(problem);
  Problem const forward = as_forward(problem);
  if (plan.refusal.empty()) plan.refusal = fprop_small_c_violation(forward, device);
  return plan.refusal.empty() ? FpropSmallCSearch(as_computed(problem), device).best() : plan;
}

std::string print(FpropSmallCShape const& shape) {
  char const* const units = shape.filter_units == FilterUnits::channels  ? "FilterUnits::channels"
                            : shape.filter_units == FilterUnits::filters ? "FilterUnits::filters"
                                                                         : "FilterUnits::none";
  return fmt::format(
      "FpropSmallCShape{{{{{}, {}}}, {{{}, {}}}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}",
      shape.rows.stride, shape.rows.taps, shape.columns.stride, shape.columns.taps, shape.channels,
      shape.place, shape.async, shape.down, shape.across, shape.warps, shape.fragments, shape.bands,
      shape.blocks, units, shape.result_bytes, shape.unit);
}

std::string FpropSmallCTraits::print() const {
  return fmt::format("FpropSmallCTraits<{}, {}, {},\n{},\n{}>", plan::print(shape), fixed, name_of(type),
                     epilogue, destination);
}

program::Program fprop_small_c_program(Plan<Problem> const& plan) {
  FpropSmallCPlan const planned = fprop_small_c_plan(plan.problem, plan.device);
  FpropSmallCShape const& shape = planned.shape;
  Problem const problem = as_computed(plan.problem);
  bool const turns = plan.problem.direction == ConvolutionDirection::data;
  Index const first = turns ? offset_of_last_tap(plan.problem.w) * size_of(plan.problem.w.type) : 0;  // bytes
  ConvolutionForm form = form_of(plan.problem);
  ConvolutionProgram made(plan, {});
  bool const fixed = !made.is_emulated();
  auto const threads = static_cast<unsigned>(shape.threads());
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = FpropSmallCParameters<Epilogue, Destination>;
    KernelTypes const host = emulated_types(DataType::f32);
    FpropSmallCTraits const traits{
        fixed ? shape : emulated_fprop_small_c_shape(shape.async, shape.place, shape.result_bytes > 0), fixed,
        problem.x.type, fixed ? epilogue_text(form) : host.epilogue,
        fixed ? destination_text(form) : host.destination};
    std::size_t const kernel = made.add_kernel<Parameters>(
        {.headers = {"conv/small_c/fprop_small_c.h"},
         .entry = "fprop_small_c_kernel",
         .traits = traits.print(),
         .asserted = {{"ComposedTraits::threads", threads}},
         .threads = threads,
         .shared_bytes = static_cast<unsigned>(shape.shared_bytes(size_of(problem.x.type)))},
        form);
    made.launch<Parameters>(kernel, {planned.blocks, planned.parts},
                            [write = made.window_writer(arguments_of(problem, planned, form), form), first](
                                program::Run const& run, Parameters& to) {
                              write(run, to);
                              to.window.filter = static_cast<std::byte const*>(to.window.filter) + first;
                            });
  });
  return std::move(made).finish();
}

Offer<Problem> fprop_small_c(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  FpropSmallCPlan const plan = fprop_small_c_plan(problem, device);
  offer.refusal = plan.refusal;
  if (!offer.refusal.empty()) return offer;
  FpropSmallCShape const& shape = plan.shape;
  offer.recipe.algorithm = ConvolutionAlgorithm::fprop_small_c;
  offer.recipe.product = product_recipe(form_of(problem));
  offer.recipe.product.policy.multiply = Multiply::mma;
  offer.recipe.product.predicted_seconds = offer.predicted_seconds = plan.seconds;
  offer.text = fmt::format(
      "mma, {}x{} outputs of {} filters, {} channels in {}, {} warps of {} fragments, {} bytes of shared "
      "memory, {} blocks per multiprocessor, 1 launch",
      shape.down, shape.across, shape.bands * FpropSmallCShape::band, shape.channels, shape.place,
      shape.warps, shape.fragments, shape.shared_bytes(size_of(problem.x.type)), shape.blocks);
  return offer;
}

}  // namespace cosmati::plan
