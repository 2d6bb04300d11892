// Convolution by Winograd's F(2x2, 3x3) in f32: tiles of the images are transformed block by block,
// multiplied with the transformed filters by OpenBLAS, and transformed back with the epilogue, while they are
// in the cache. The tiles of a strided data gradient (a transposed convolution) serve all of its phases.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "cosmati/epilogue/parse.h"
#include "src/backend/cpu/conv/winograd/transforms.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/gemm/openblas.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/region_epilogue.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/plan/conv/winograd/winograd.h"
#include "src/plan/conv/winograd/winograd_phases.h"

namespace cosmati::cpu {
namespace {

using Problem = ConvolutionProblem;
using plan::WinogradAxis;

TensorDescription const& source_of(Problem const& p) {
  return p.direction == ConvolutionDirection::data ? p.y : p.x;
}

// Tiles that are multiplied at a time: rows of tiles of one image, or all tiles of some images.
struct Block {
  Index image, images, tile_row, tile_rows;
};

class WinogradKernel final : public HostKernel<Problem> {
 public:
  WinogradKernel(Problem const& problem, Device const& device)
      : problem_(problem),
        threads_(device.threads),
        rows_(problem, 0),
        columns_(problem, 1),
        depth_(source_of(problem).extent(1)),
        channels_(problem.result().extent(1)),
        plain_(is_plain(problem.epilogue) && problem.result().layout.stride[1] == 1) {
    bool const data = problem.direction == ConvolutionDirection::data;
    depth_stride_ = problem.w.layout.stride[data ? 0 : 1];
    channel_stride_ = problem.w.layout.stride[data ? 1 : 0];
    lines_of_depth_ = depth_stride_ == 1 || channel_stride_ != 1;
    place_matrices();
    divide();
    if (plain_) return;
    epilogue_.emplace(problem.epilogue, epilogue::convolution_indices, TensorDescription(), problem.result(),
                      false);
    for (Block const& block : blocks_) {
      TensorDescription const sums = sums_of(block);
      epilogue_->add(sums);
      most_sums_ = std::max(most_sums_, sums.layout.size());
    }
  }

  std::size_t workspace_bytes() const {
    return floats(filter_floats_) + static_cast<std::size_t>(threads_) * part_bytes();
  }

  void run(Problem::Arguments const& arguments, std::byte* workspace) const override {
    auto* const filters = reinterpret_cast<float*>(workspace);
    std::byte* const parts_memory = workspace + floats(filter_floats_);
    Index const lines = lines_of_depth_ ? channels_ : depth_;
    parallel_parts(threads_, [&](int part, int parts) {
      Memory const memory = memory_of(parts_memory, part);
      auto const [first, last] = share(lines, part, parts);
      for (Index line = first; line < last; ++line)
        transform_line(line, static_cast<float const*>(arguments.w), filters, memory);
    });
    std::atomic<std::size_t> next = 0;
    parallel_parts(threads_, [&](int part, int) {
      Memory const memory = memory_of(parts_memory, part);
      for (std::size_t i; (i = next.fetch_add(1)) < blocks_.size();)
        compute(blocks_[i], arguments, filters, memory);
    });
  }

 private:
  // The memory of a thread.
  struct Memory {
    float *tiles, *products, *sums;
    float* gathered;  // lines of channels that are not contiguous
    float* zeros;     // a line of zeros, for what lies outside the image or the filter
    float* unused;    // a line for results that do not exist
    std::byte* epilogue;
  };
  static std::size_t floats(Index count) { return round_up(static_cast<std::size_t>(count) * sizeof(float)); }
  Index line() const { return std::max(depth_, channels_); }
  std::size_t part_bytes() const {
    return floats(winograd_positions * most_tiles_ * depth_) + floats(product_columns_ * most_tiles_) +
           floats(most_sums_) + floats(winograd_positions * line()) + 2 * floats(line()) +
           (epilogue_ ? round_up(epilogue_->workspace_bytes()) : 0);
  }
  Memory memory_of(std::byte* parts, int part) const {
    std::byte* next = parts + static_cast<std::size_t>(part) * part_bytes();
    auto const take = [&next](Index count) {
      auto* const taken = reinterpret_cast<float*>(next);
      next += floats(count);
      return taken;
    };
    Memory memory{};
    memory.tiles = take(winograd_positions * most_tiles_ * depth_);
    memory.products = take(product_columns_ * most_tiles_);
    memory.sums = take(most_sums_);
    memory.gathered = take(winograd_positions * line());
    memory.zeros = take(line());
    memory.unused = take(line());
    memory.epilogue = next;
    std::fill_n(memory.zeros, line(), 0.0f);
    return memory;
  }

  Index phases() const { return rows_.stride * columns_.stride; }

  // The matrices of transformed filters, one per position: (phase, channel) by depth.
  void place_matrices() {
    for (int at = 0; at < winograd_positions; ++at) {
      Matrix& matrix = matrices_[static_cast<std::size_t>(at)];
      matrix.slots.assign(static_cast<std::size_t>(phases()), -1);
      Index used = 0;
      for (Index phase = 0; phase < phases(); ++phase)
        if (rows_.multiplies(phase / columns_.stride, at / 4) &&
            columns_.multiplies(phase % columns_.stride, at % 4))
          matrix.slots[static_cast<std::size_t>(phase)] = used++;
      matrix.columns = used * channels_;
      matrix.filter = filter_floats_;
      matrix.product = product_columns_;
      filter_floats_ += matrix.columns * depth_;
      product_columns_ += matrix.columns;
    }
  }

  // Divides the tiles into nearly equal blocks that about fit into the caches, equally many per thread.
  void divide() {
    constexpr Index most_floats = Index{1} << 22, fewest = 32, most = 256;
    Index const images = problem_.result().extent(0), of_image = rows_.tiles * columns_.tiles;
    Index const wanted =
        std::clamp(most_floats / (winograd_positions * depth_ + product_columns_), fewest, most);
    auto const parts_of = [](Index count, Index size) { return (count + size - 1) / size; };
    Index groups = parts_of(images, std::max<Index>(wanted / of_image, 1)),
          bands = parts_of(rows_.tiles, std::max<Index>(wanted / columns_.tiles, 1));
    if (of_image <= wanted) bands = 1;
    while (groups * bands % threads_ != 0 && groups < images) ++groups;
    while (groups * bands % threads_ != 0 && bands < rows_.tiles) ++bands;
    for (Index group = 0; group < groups; ++group)
      for (Index band = 0; band < bands; ++band) {
        auto const part = [](Index count, Index i, Index parts) {
          return share(count, static_cast<int>(i), static_cast<int>(parts));
        };
        Range const of_images = part(images, group, groups), of_rows = part(rows_.tiles, band, bands);
        Block const block{of_images.first, of_images.last - of_images.first, of_rows.first,
                          of_rows.last - of_rows.first};
        blocks_.push_back(block);
        most_tiles_ = std::max(most_tiles_, block.images * block.tile_rows * columns_.tiles);
      }
  }

  // The rows of the result that a block computes, of all phases: they follow those of the block before it.
  Range result_rows(Block const& block) const {
    auto const row = [&](Index tile_row) {
      if (tile_row == rows_.tiles) return rows_.outputs;
      Index first = rows_.outputs;
      for (Index phase = 0; phase < rows_.stride; ++phase)
        first = std::min(first, rows_.output(phase, rows_.first + WinogradAxis::tile * tile_row));
      return std::clamp<Index>(tile_row == 0 ? 0 : first, 0, rows_.outputs);
    };
    return {row(block.tile_row), row(block.tile_row + block.tile_rows)};
  }

  // The sums of a block, dense in the thread's memory.
  TensorDescription sums_of(Block const& block) const {
    auto const [first, last] = result_rows(block);
    return describe(DataType::f32, image_layout(TensorFormat::nhwc, block.images, channels_, last - first,
                                                problem_.result().extent(3)));
  }

  // A line itself, or a copy without the steps between its elements.
  static float const* contiguous(float const* line, Index step, Index count, float* copy) {
    if (step == 1) return line;
    for (Index c = 0; c < count; ++c) copy[c] = line[c * step];
    return copy;
  }

  // Transforms the filters of one channel (or of one input channel) in all phases.
  void transform_line(Index number, float const* w, float* filters, Memory const& memory) const {
    Index const along = lines_of_depth_ ? depth_stride_ : channel_stride_,
                across = lines_of_depth_ ? channel_stride_ : depth_stride_,
                count = lines_of_depth_ ? depth_ : channels_;
    auto const& stride = problem_.w.layout.stride;
    for (Index phase = 0; phase < phases(); ++phase) {
      float const* from[winograd_taps];
      for (int i = 0; i < winograd_taps; ++i) {
        Index const r = rows_.tap(phase / columns_.stride, i / 3),
                    s = columns_.tap(phase % columns_.stride, i % 3);
        from[i] = r < 0 || s < 0 ? memory.zeros
                                 : contiguous(w + number * across + r * stride[2] + s * stride[3], along,
                                              count, memory.gathered + i * count);
      }
      float* to[winograd_positions];
      for (std::size_t at = 0; at < winograd_positions; ++at) {
        Matrix const& matrix = matrices_[at];
        Index const slot = matrix.slots[static_cast<std::size_t>(phase)];
        to[at] = slot < 0          ? memory.unused
                 : lines_of_depth_ ? filters + matrix.filter + (slot * channels_ + number) * depth_
                                   : filters + matrix.filter + number * matrix.columns + slot * channels_;
      }
      transform_filter(from, to, count);
    }
  }

  void compute(Block const& block, Problem::Arguments const& arguments, float const* filters,
               Memory const& memory) const {
    bool const data = problem_.direction == ConvolutionDirection::data;
    Index const tiles = block.images * block.tile_rows * columns_.tiles;
    load(block, static_cast<float const*>(data ? arguments.dy : arguments.x), memory);
    for (std::size_t at = 0; at < winograd_positions; ++at) {
      Matrix const& matrix = matrices_[at];
      openblas_product(false, lines_of_depth_, tiles, matrix.columns, depth_, 1,
                       memory.tiles + static_cast<Index>(at) * most_tiles_ * depth_, depth_,
                       filters + matrix.filter, lines_of_depth_ ? depth_ : matrix.columns, 0,
                       memory.products + matrix.product * most_tiles_, matrix.columns);
    }
    void* const result = data ? arguments.dx : arguments.y;
    Shape const first{block.image, 0, result_rows(block).first, 0};
    if (plain_) {
      Layout const& layout = problem_.result().layout;
      return store(block, static_cast<float*>(result) + layout.offset_of(first.extent), layout, memory);
    }
    Layout const sums = sums_of(block).layout;
    store(block, memory.sums, sums, memory);
    epilogue_->run(sums.shape, first,
                   {memory.sums, nullptr, arguments.operands, arguments.scalars, result, arguments.stores},
                   memory.epilogue);
  }

  // Calls visit(image of the block, first output row and column, number of the tile) for each tile.
  template <class Visit>
  void for_each_tile(Block const& block, Visit const& visit) const {
    Index number = 0;
    for (Index image = 0; image < block.images; ++image)
      for (Index row = block.tile_row; row < block.tile_row + block.tile_rows; ++row)
        for (Index column = 0; column < columns_.tiles; ++column, ++number)
          visit(image, rows_.first + WinogradAxis::tile * row, columns_.first + WinogradAxis::tile * column,
                number);
  }

  void load(Block const& block, float const* images, Memory const& memory) const {
    auto const& stride = source_of(problem_).layout.stride;
    for_each_tile(block, [&](Index image, Index u, Index v, Index number) {
      float const* const base = images + (block.image + image) * stride[0];
      float const* from[winograd_positions];
      for (int at = 0; at < winograd_positions; ++at) {
        Index const h = rows_.input(u) + at / 4, w = columns_.input(v) + at % 4;
        bool const inside = h >= 0 && h < rows_.inputs && w >= 0 && w < columns_.inputs;
        from[at] = inside ? contiguous(base + h * stride[2] + w * stride[3], stride[1], depth_,
                                       memory.gathered + at * depth_)
                          : memory.zeros;
      }
      float* to[winograd_positions];
      for (int at = 0; at < winograd_positions; ++at)
        to[at] = memory.tiles + (at * most_tiles_ + number) * depth_;
      transform_tile(from, to, depth_);
    });
  }

  // Writes the block's results; `target` points to the first of them.
  void store(Block const& block, float* target, Layout const& layout, Memory const& memory) const {
    Index const first_row = result_rows(block).first;
    for_each_tile(block, [&](Index image, Index u, Index v, Index number) {
      for (Index phase = 0; phase < phases(); ++phase) {
        float const* from[winograd_positions];
        for (std::size_t at = 0; at < winograd_positions; ++at) {
          Matrix const& matrix = matrices_[at];
          Index const slot = matrix.slots[static_cast<std::size_t>(phase)];
          from[at] = slot < 0 ? memory.zeros
                              : memory.products + matrix.product * most_tiles_ + number * matrix.columns +
                                    slot * channels_;
        }
        float* to[winograd_outputs];
        for (int i = 0; i < winograd_outputs; ++i) {
          Index const h = rows_.output(phase / columns_.stride, u + i / 2),
                      w = columns_.output(phase % columns_.stride, v + i % 2);
          bool const exists = h >= 0 && h < rows_.outputs && w >= 0 && w < columns_.outputs;
          to[i] = exists ? target + image * layout.stride[0] + (h - first_row) * layout.stride[2] +
                               w * layout.stride[3]
                         : memory.unused;
        }
        transform_sums(from, to, channels_);
      }
    });
  }

  // The transformed filters of a position, and their products with a block's tiles.
  struct Matrix {
    std::vector<Index> slots;       // of each phase among the columns; -1: its products are 0
    Index columns = 0;              // (slot, channel)
    Index filter = 0, product = 0;  // offsets: of the filters; of the products, in columns before it
  };

  Problem problem_;
  int threads_;
  WinogradAxis rows_, columns_;
  Index depth_, channels_;  // of the source and of the result
  bool plain_;              // results are written directly
  Index depth_stride_ = 0, channel_stride_ = 0;
  bool lines_of_depth_ = false;  // the transformed filters are contiguous along the depth
  std::array<Matrix, winograd_positions> matrices_;
  Index filter_floats_ = 0, product_columns_ = 0, most_tiles_ = 0, most_sums_ = 0;
  std::vector<Block> blocks_;
  std::optional<RegionEpilogue> epilogue_;
};

std::string violates_winograd(Problem const& p, Device const& device) {
  if (!device.openblas) return "OpenBLAS cannot be opened: " + openblas_description();
  bool const data = p.direction == ConvolutionDirection::data;
  if (p.direction != ConvolutionDirection::forward && !data) return "the direction must be forward or data";
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y}) {
    if (tensor->type != DataType::f32)
      return std::string("x, w and y are ") + name_of(p.x.type) + ", " + name_of(p.w.type) + " and " +
             name_of(p.y.type) + "; all three must be f32";
    if (tensor->layout.size() == 0) return "a tensor is empty";
  }
  if (p.groups != 1) return fmt::format("{} groups; expected 1", p.groups);
  for (int i : {0, 1}) {
    if (p.dilation[i] != 1 || (!data && p.stride[i] != 1))
      return fmt::format(
          "stride {} and dilation {}; the dilation must be 1, and the stride unless the direction is data",
          p.stride[i], p.dilation[i]);
    Index const most = WinogradAxis::most_taps * (data ? p.stride[i] : 1);
    if (p.w.extent(2 + i) > most)
      return fmt::format("{} taps; at most {} are supported", p.w.extent(2 + i), most);
  }
  Index const phases = data ? p.stride[0] * p.stride[1] : 1;
  for (Index columns : {source_of(p).extent(1), phases * p.result().extent(1)})
    if (columns > largest_blas_index)
      return fmt::format("a matrix has {} columns; OpenBLAS's indices are below 2^31", columns);
  return {};
}

// Measured with AVX2, two threads and NHWC on layers of ResNet-50 and of a DCGAN generator, against oneDNN's
// best: 1.3 to 2.2 times as fast with at least this many channels, 0.2 to 1.2 with fewer. With few tiles for
// each thread the transforms of the filters dominate: 0.5 to 0.6 with eight, 1.0 to 1.4 with twenty-five.
std::string advises_against_winograd(Problem const& p, Device const& device) {
  constexpr Index fewest_channels = 64, fewest_tiles = 32;
  if (device.avx512) return "the processor has AVX-512; it was measured without";
  if (p.x.layout.stride[1] != 1 || p.y.layout.stride[1] != 1)
    return "the channels of x or y are not contiguous; it is as fast as oneDNN then";
  WinogradAxis const rows(p, 0), columns(p, 1);
  for (WinogradAxis const* axis : {&rows, &columns})
    if (axis->taps_of(axis->stride - 1) < 2)
      return fmt::format("{} taps for a stride of {}; it pays off with at least 2 for each phase", axis->taps,
                         axis->stride);
  Index const channels = p.result().extent(1) * rows.stride * columns.stride, depth = source_of(p).extent(1);
  if (depth < fewest_channels || channels < fewest_channels)
    return fmt::format("{} input and {} output channels, of all phases; it pays off with at least {}", depth,
                       channels, fewest_channels);
  Index const tiles = p.x.extent(0) * rows.tiles * columns.tiles;
  if (tiles < fewest_tiles * device.threads)
    return fmt::format("{} tiles of 2x2 outputs for {} threads; it pays off with at least {} for each", tiles,
                       device.threads, fewest_tiles);
  return {};
}

Offer<Problem> offer_winograd(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  offer.workspace_bytes = WinogradKernel(problem, device).workspace_bytes();
  offer.expected_error =
      plan::winograd_error(WinogradAxis::tile, DataType::f32, source_of(problem).extent(1));
  offer.text = "tiles of 2x2, a NaN spreads to its whole tile, products by OpenBLAS";
  return offer;
}

}  // namespace

Candidate<Problem> host_winograd_candidate() {
  Candidate<Problem> candidate{"winograd",
                               {{violates_winograd}, {advises_against_winograd, true}},
                               nullptr,
                               [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
                                 return std::make_unique<WinogradKernel>(plan.problem, plan.device);
                               }};
  candidate.offer = offer_winograd;
  return candidate;
}

}  // namespace cosmati::cpu
