// Which filter gradients wgrad_taps supports, its shape, and the predicted time.
#include "src/plan/conv/filter/wgrad_taps.h"
#include "src/plan/buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/ops/architecture.h"
#include "src/plan/best_offer.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter/filter_gradient.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/windows/line_boxes.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr int max_taps = 3;      // taps per block in each direction
constexpr int lines_before = 8;  // lines of zeros before dy and x in shared memory

// Returns the number of tiles of 64 channels that cover the groups of any 64 filters.
Index channel_tiles(Problem const& p) {
  Index const filters = p.w.extent(0) / p.groups, channels = p.w.extent(1);  // per group
  if (p.groups == 1) return ceiling_divide(channels, wgrad_taps_channels);
  Index most = 0;
  for (Index filter = 0; filter < p.w.extent(0); filter += wgrad_taps_channels) {
    Index const last = std::min(filter + wgrad_taps_channels, p.w.extent(0)) - 1;
    most = std::max(
        most, (last / filters + 1) * channels - WgradTapsTiles::first_channel(filter / filters * channels));
  }
  return ceiling_divide(most, wgrad_taps_channels);
}

// The approximate share of the sums that is stored: for 16 filters, the channels of their groups, at least 8.
double stored_share(Problem const& p) {
  if (p.groups == 1) return 1;
  Index const groups = ceiling_divide(16, p.w.extent(0) / p.groups);
  auto const channels = static_cast<double>(std::max<Index>(8, groups * p.w.extent(1)));
  return std::min(1.0, channels / static_cast<double>(channel_tiles(p) * wgrad_taps_channels));
}

std::string wgrad_taps_violation(Problem const& p, Device const& device, PlanOptions const& options) {
  if (p.direction != ConvolutionDirection::filter) return "computes filter gradients only";
  if (std::string sentence = options.policy.refusal(); !sentence.empty()) return sentence;
  if (std::string sentence = wgmma_device_violation(device.gpu); !sentence.empty()) return sentence;
  if (std::string sentence = problem_violation(p, device.backend); !sentence.empty()) return sentence;
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y})
    if (tensor->layout.size() == 0)
      return fmt::format("{} has no elements; TMA requires at least one", to_string(*tensor));
  if (p.groups > 1 && p.w.extent(1) % 4 != 0)
    return fmt::format("groups of {} channels; supported: multiples of 4", p.w.extent(1));
  DataType const sum = accumulator_type(p.x.type, p.y.type);
  if (p.x.type != p.y.type || size_of(p.x.type) != 2 || !wgmma_takes(p.x.type, p.y.type, sum) ||
      sum != DataType::f32)
    return fmt::format("x is {} and dy {}; supported: f16 or bf16 for both", name_of(p.x.type),
                       name_of(p.y.type));
  if (device.backend == Backend::emulator && p.x.type != DataType::f16)
    return fmt::format("the emulator has this kernel for f16, not for {}", name_of(p.x.type));
  for (int i : {0, 1}) {
    if (p.stride[i] > 2) return fmt::format("a stride of {}; supported: 1 and 2", p.stride[i]);
    if (p.dilation[i] > 16) return fmt::format("a dilation of {}; supported: at most 16", p.dilation[i]);
  }
  if (p.stride[1] > p.x.extent(3)) return "x has one column, and the stride is 2";
  if (std::string sentence = line_boxes_violation("x", p.x); !sentence.empty()) return sentence;
  if (std::string sentence = line_boxes_violation("dy", p.y); !sentence.empty()) return sentence;
  // The number of sums, rounded up to full tiles, must fit in a 32-bit int.
  Index const sums = ceiling_divide(p.w.extent(0), wgrad_taps_channels) * channel_tiles(p) *
                     (p.w.extent(2) + max_taps) * (p.w.extent(3) + max_taps) * wgrad_taps_channels *
                     wgrad_taps_channels;
  if (sums > max_int) return fmt::format("up to {} sums; at most {}", sums, max_int);
  return {};
}

// Tries every shape and number of parts; keeps the one predicted to be fastest.
class WgradTapsSearch {
 public:
  WgradTapsSearch(Problem const& problem, Device const& device, PlanOptions const& options)
      : problem_(problem),
        device_(device),
        options_(options),
        form_(forms_of(problem).front()),
        stored_share_(stored_share(problem)) {
    auto const axis = [&](int i) {
      Index const taps = problem.w.extent(2 + i);
      Index const groups = ceiling_divide(taps, max_taps);
      return WgradTapsAxis{static_cast<int>(ceiling_divide(taps, groups)),
                           static_cast<int>(problem.stride[i]), static_cast<int>(problem.dilation[i])};
    };
    axes_.rows = axis(0), axes_.columns = axis(1);
  }

  Offer<Problem> best() {
    if (device_.backend == Backend::emulator) {
      for (WgradTapsShape const& shape : emulated_wgrad_taps_shapes)
        if (shape.rows == axes_.rows && shape.columns == axes_.columns) try_shape(shape);
      if (!best_.found() && !best_.refused())
        best_.refuse(
            "the emulator has this kernel for filters of 3x3 taps with strides of 1 and 2, and of 2x2 "
            "taps with dilations of 2");
      return std::move(best_).result();
    }
    Index const columns = problem_.y.extent(3), rows = problem_.y.extent(2);
    for (Index across = 8; across <= max_box && across < columns + 8; across += 8)
      for (Index down = 1; down <= std::min<Index>(rows, 32); ++down)
        for (int const images : {1, 2, 4, 8}) {
          WgradTapsShape shape = axes_;
          shape.across = static_cast<int>(across), shape.down = static_cast<int>(down);
          shape.images = images;
          if (shape.pairs_images() && images == 1) continue;
          shape.has_odd_rows = shape.pairs_rows() && rows % 2 != 0;
          if (images > 1 && (down < rows || images > problem_.y.extent(0) + 1)) continue;
          int const free = device_.gpu.shared_bytes_per_block;
          for (shape.stages = 6; shape.stages > 1 && shape.shared_bytes() > free;) --shape.stages;
          try_shape(shape);
        }
    return std::move(best_).result();
  }

 private:
  void try_shape(WgradTapsShape const& shape) {
    if (!leading_padding(problem_, shape).possible)
      return best_.refuse(fmt::format(
          "rows of {} outputs, not a multiple of 8, and too little padding around x to complete them",
          problem_.y.extent(3)));
    if (shape.image_columns() > max_box || shape.image_rows() > max_box || shape.stages < 2 ||
        shape.shared_bytes() > device_.gpu.shared_bytes_per_block)
      return best_.refuse(
          fmt::format("two stages of {} outputs and the rows of x around them do not fit in shared memory",
                      shape.across));
    if (shape.pairs_rows() && shape.has_odd_rows != (problem_.y.extent(2) % 2 != 0))
      return best_.refuse("rows of outputs are multiplied two at a time, and their number is odd");
    if (shape.has_odd_rows && problem_.y.extent(2) % shape.down == 1)
      return best_.refuse(
          fmt::format("{} rows of outputs, {} at a time, leave a single one, but two are multiplied together",
                      problem_.y.extent(2), shape.down));
    WgradTapsParameters launch = wgrad_taps_parameters(problem_, shape, 1);
    Index const tiles = wgrad_taps_tiles(launch), multiprocessors = device_.gpu.multiprocessors;
    for (Index waves = 1; waves <= 8; ++waves)
      try_parts(launch, shape, std::max<Index>(1, waves * multiprocessors / tiles));
  }

  // Sets the parts of `launch`.
  void try_parts(WgradTapsParameters& launch, WgradTapsShape const& shape, Index parts) {
    if (device_.backend == Backend::emulator) parts = 3;
    parts = std::clamp<Index>(parts, 1, launch.steps);
    launch.parts = static_cast<int>(parts);
    auto const workspace = static_cast<std::size_t>(wgrad_taps_sums(launch, shape) * parts) * sizeof(float);
    if (std::string no = workspace_violation(workspace, options_.max_workspace); !no.empty())
      return best_.refuse(std::move(no));
    double const seconds = predicted_seconds(launch, shape, workspace);
    if (!best_.takes(seconds)) return;
    ConvolutionRecipe recipe;
    recipe.algorithm = ConvolutionAlgorithm::wgrad_taps;
    recipe.product = product_recipe(form_);
    recipe.product.partial_bytes = workspace;
    recipe.product.predicted_seconds = seconds;
    bool const in_runs = !form_.image_is_a && tap_digit(form_, 'c').number == 1;
    int slices = 1;  // groups of up to 4 parts; a thread loads one group at a time
    while (4 * slices < parts && slices < 32) slices *= 2;
    if (device_.backend == Backend::emulator) slices = emulated_wgrad_taps_slices;
    recipe.own = WgradTapsRecipe{shape, static_cast<int>(parts), slices, in_runs};
    best_.take({{},
                workspace,
                seconds,
                recipe,
                fmt::format(
                    "{}x{} taps of 64 filters by 64 channels per block, {}x{}x{} images, rows and columns of "
                    "outputs at a time, {} stages, parts added in a fixed order: {}",
                    shape.rows.taps, shape.columns.taps, shape.images, shape.down, shape.across, shape.stages,
                    parts)});
  }

  // Clocks of a 128-byte line and of a row of a box, by TMA, and of a block; seconds of two launches; how
  // much slower the kernel is; shares of the memory's rate for the tensors and for the sums.
  struct Costs {
    double line, row, block, launches_seconds, slower, share_of_memory, share_of_sums;
  };
  // Several taps: the clocks were measured on an H100 (decision 42), the rest on an H200, in 121 convolutions
  // of the suites in f16. One tap: fitted on an H200 to 23 layers, with a standard deviation of 15 %; pixels
  // that begin within sectors touch one more (232 channels at 14x14).
  Costs costs() const {
    constexpr double within_sectors = 1.6;
    auto const begin_at_sectors = [](TensorDescription const& tensor) {
      return tensor.layout.stride[3] * size_of(tensor.type) % sector_bytes == 0;
    };
    bool const whole = begin_at_sectors(problem_.x) && begin_at_sectors(problem_.y);
    if (has_one_tap(problem_)) return {whole ? 2.25 : 2.25 * within_sectors, 0, 330, 3e-6, 1.06, 0.77, 0.32};
    return {3.5, 4, 3000, 4e-6, 1.1, 0.8, 1};
  }

  // The time of both kernels.
  double predicted_seconds(WgradTapsParameters const& launch, WgradTapsShape const& shape,
                           std::size_t partial_bytes) const {
    Costs const cost = costs();
    constexpr double share_of_rate = 0.83;  // of the tensor cores' peak
    constexpr double clocks_of_step = 30;
    Gpu const& gpu = device_.gpu;
    double const products = shape.gradient_lines() / 16.0 * shape.columns.taps * shape.rows.taps * 32;
    double const copies = static_cast<double>(shape.copied_bytes()) / wgrad_taps_line * cost.line +
                          shape.images * (shape.down + shape.phases() * shape.image_rows()) * cost.row;
    // Few stages leave little time for copies; boxes of few columns and two phases are copied slowly; where
    // rows are multiplied one at a time, the compiler waits for products.
    constexpr double waits[] = {1.25, 1.05, 1.01, 1};
    double const step = waits[std::min(shape.stages, 5) - 2] * (shape.across == 8 ? 1.05 : 1) *
                            (shape.phases() == 2 ? 1.45 : 1) * (shape.has_odd_rows ? 1.2 : 1) *
                            std::max(products / share_of_rate, copies) +
                        0.1 * std::min(products, copies) + clocks_of_step;
    Index const blocks = wgrad_taps_tiles(launch) * launch.parts,
                waves = ceiling_divide(blocks, gpu.multiprocessors),
                steps = ceiling_divide(launch.steps, launch.parts);
    double const clocks = static_cast<double>(waves) * (static_cast<double>(steps) * step + cost.block);
    double const bytes = static_cast<double>(problem_.x.bytes() + problem_.y.bytes());
    double const compute = clocks / gpu.clock_hertz,
                 read = bytes / (cost.share_of_memory * gpu.memory_bytes_per_second);
    return cost.launches_seconds + cost.slower * (std::max(compute, read) + 0.1 * std::min(compute, read)) +
           stored_share_ * static_cast<double>(partial_bytes) /
               (cost.share_of_sums * gpu.memory_bytes_per_second);
  }

  Problem const& problem_;
  Device const& device_;
  PlanOptions const& options_;
  ConvolutionForm form_;
  double stored_share_;
  WgradTapsShape axes_;
  BestOffer<Problem> best_;
};

}  // namespace

Offer<Problem> wgrad_taps(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = wgrad_taps_violation(problem, device, options);
  if (offer.refusal.empty()) offer.refusal = extent_violation(forms_of(problem));
  if (!offer.refusal.empty()) return offer;
  return WgradTapsSearch(problem, device, options).best();
}

LeadingPadding leading_padding(Problem const& problem, WgradTapsShape const& shape) {
  LeadingPadding leading;
  Index const outputs = problem.y.extent(3), width = problem.x.extent(3);
  if (outputs % shape.across == 0) return leading;
  // The zeros that pad a chunk to groups of 8 outputs pair with zeros only if x also ends there.
  Index const stride = problem.stride[1], dilation = problem.dilation[1], left = -problem.pad_begin[1];
  Index const taps = problem.w.extent(3), last_chunk = outputs / shape.across * shape.across;
  leading.zeros = static_cast<int>(last_chunk + shape.across - outputs);
  auto const exists = [&](Index tap, Index output) {
    Index const column = output * stride + tap * dilation + left;
    return column >= 0 && column < width;
  };
  auto const floor_divided = [&](Index value) {
    return value >= 0 ? value / stride : -((stride - 1 - value) / stride);
  };
  for (Index tap = 0; tap < taps; ++tap) {
    bool trailing = true;
    for (Index output = outputs; output < last_chunk + shape.across; ++output)
      trailing = trailing && !exists(tap, output);
    if (trailing) continue;
    // The zeros before the row are read instead of those after it. They must pair with the padding at the end
    // of the previous row of x.
    Index const first_tap = tap / shape.columns.taps * shape.columns.taps;
    Index const first = floor_divided(left + first_tap * dilation),
                own = floor_divided(left + tap * dilation);
    Index const phase = left + tap * dilation - own * stride;
    bool possible = last_chunk == 0 && leading.taps == tap && leading.zeros <= lines_before;
    for (Index zero = 1; possible && zero <= leading.zeros; ++zero) {
      Index line = own - first - zero;
      if (line < 0) line += shape.image_columns();
      Index const column = (first + line) * stride + phase;
      possible = column < 0 || column >= width;
    }
    if (!possible) {
      leading.possible = false;
      return leading;
    }
    leading.taps = static_cast<int>(tap) + 1;
  }
  return leading;
}

WgradTapsParameters wgrad_taps_parameters(Problem const& problem, WgradTapsShape const& shape, int parts) {
  TensorDescription const &x = problem.x, &w = problem.w, &dy = problem.y;
  LeadingPadding const leading = leading_padding(problem, shape);
  WgradTapsParameters p;
  p.top = -static_cast<int>(problem.pad_begin[0]);
  p.left = -static_cast<int>(problem.pad_begin[1]);
  p.outputs_down = static_cast<int>(dy.extent(2));
  p.lead = leading.zeros;
  p.leading_taps = leading.taps;
  p.chunks = Divisor(ceiling_divide(dy.extent(3), shape.across));
  p.bands = Divisor(ceiling_divide(dy.extent(2), shape.down));
  p.steps =
      static_cast<int>(Index{p.chunks.divisor} * p.bands.divisor * ceiling_divide(x.extent(0), shape.images));
  p.parts = parts;
  p.tiles.channels = Divisor(channel_tiles(problem));
  p.tiles.group_filters = Divisor(w.extent(0) / problem.groups);
  p.tiles.group_channels = Divisor(w.extent(1));
  p.tiles.rows = Divisor(ceiling_divide(w.extent(2), shape.rows.taps));
  p.tiles.columns = Divisor(ceiling_divide(w.extent(3), shape.columns.taps));
  p.tiles.taps_down = shape.rows.taps;
  p.tiles.taps_across = shape.columns.taps;
  p.tile_count = Divisor(ceiling_divide(w.extent(0), wgrad_taps_channels) * p.tiles.channels.divisor *
                         p.tiles.rows.divisor * p.tiles.columns.divisor);
  return p;
}

Index wgrad_taps_sums(WgradTapsParameters const& parameters, WgradTapsShape const& shape) {
  return wgrad_taps_tiles(parameters) * shape.rows.taps * shape.columns.taps * wgrad_taps_channels *
         wgrad_taps_channels;
}

}  // namespace cosmati::plan
