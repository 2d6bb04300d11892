// The filter gradient of a filter of one tap on tensor cores, for images whose pixels are at equal distances:
// dw[k, c] = sum over pixels of dy[pixel, k] * x[pixel, c], for 16-bit types. A block keeps the sums of its
// filters and channels in registers while it reads their pixels once, in contiguous pieces. The depth takes
// pixels in any order, and their order in shared memory avoids bank conflicts for any number of channels. A
// second kernel (wgrad_pointwise_sum.h) adds the blocks' sums in a fixed order.
#pragma once
#include "cosmati/arch/matrix.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/pointwise/wgrad_pointwise_arguments.h"
#include "cosmati/conv/sum_of_blocks.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// `fixed`: shape_ is the shape of the launch; otherwise its operands, and the length of a run, do not apply.
// `swapped`: the filters are the columns of the result.
template <WgradPointwiseShape shape_, bool fixed_, bool swapped_, class Element_, class Epilogue_,
          class Destination_>
struct WgradPointwiseTraits {
  using Element = Element_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = WgradPointwiseParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static_assert(sizeof(Element) == 2, "ldmatrix transposes 16-bit elements only");
  static constexpr bool fixed = fixed_, swapped = swapped_, early = shape_.early;
  static constexpr int threads = shape_.threads(), blocks = shape_.blocks, stages = shape_.stages;
  static constexpr int row_fragments = shape_.row_fragments, column_fragments = shape_.column_fragments;
  static constexpr int warps_of_rows = shape_.warps_of_rows, warps_of_columns = shape_.warps_of_columns;
  static constexpr int warps_of_depth = shape_.warps_of_depth;
  static constexpr int block_rows = shape_.block_rows(), block_columns = shape_.block_columns();
  COSMATI_DEVICE static WgradPointwiseShape shape(WgradPointwiseArguments const& all) {
    if constexpr (fixed) return shape_;
    return all.shape;
  }

  struct alignas(16) SharedStorage {
    COSMATI_DEVICE unsigned char* bytes() { return reinterpret_cast<unsigned char*>(this); }
  };

  static constexpr int sum_threads = 256;
  using SumStorage = SumOfBlocks<sum_threads, shape_.sum_slices>;
};

template <class Traits>
struct WgradPointwise {
  using Element = typename Traits::Element;
  static constexpr int row_fragments = Traits::row_fragments, column_fragments = Traits::column_fragments;
  using Sums = float[row_fragments][column_fragments][4];

  WgradPointwiseArguments const& all;
  WgradPointwiseShape const shape;

  // Begins to copy the pixels from `first` of a tensor; pixels that do not exist are zeros. `first_channel`:
  // of the block's band.
  COSMATI_DEVICE void load(WgradPointwiseArguments::Tensor const& tensor, WgradPointwiseOperand const& of,
                           int first, int first_channel, unsigned char* to) const {
    int const of_run = shape.run_units(of), units = WgradPointwiseShape::runs * of_run;
    int const of_pixel = of.width / 8, padding = shape.run_bytes(of) - of_run * 16;
    auto const* const from = arch::as_global(static_cast<Element const*>(tensor.data)) +
                             Index{first} * tensor.pixel_stride + first_channel;
    int const pixels = all.pixels - first < shape.pixels() ? all.pixels - first : shape.pixels();
    COSMATI_UNROLL
    for (int i = 0; i < (units + Traits::threads - 1) / Traits::threads; ++i) {
      int const unit = i * Traits::threads + arch::thread();
      if (unit >= units) return;
      int offset = unit * 8, valid;
      if (of.contiguous) {
        valid = (pixels * of.channels - offset) * 2;
        valid = valid < 0 ? 0 : valid < 16 ? valid : 16;
      } else {
        int const pixel = unit / of_pixel, channel = (unit - pixel * of_pixel) * 8;
        valid = pixel < pixels && first_channel + channel < of.channels ? 16 : 0;
        if (valid > 0) offset = pixel * tensor.pixel_stride + channel;
      }
      arch::copy_async<16>(to + unit * 16 + unit / of_run * padding, from + (valid > 0 ? offset : 0), valid);
    }
  }

  // Adds the products of a stage. Pixel `i` of run r is row r of a matrix.
  COSMATI_DEVICE void multiply(unsigned char const* stage, Sums& sum) const {
    int const warp = arch::thread() / 32, lane = arch::thread() % 32;
    int const of_rows = warp % Traits::warps_of_rows, beside = warp / Traits::warps_of_rows;
    int const of_columns = beside % Traits::warps_of_columns, of_depth = beside / Traits::warps_of_columns;
    unsigned char const* const columns = stage + WgradPointwiseShape::runs * shape.run_bytes(shape.rows);
    COSMATI_NO_UNROLL
    for (int step = of_depth; step < shape.steps(); step += Traits::warps_of_depth) {
      unsigned a[row_fragments][4], b[(column_fragments + 1) / 2][4];
      unsigned char const* const row =
          stage + lane % 8 * shape.run_bytes(shape.rows) + (step * 2 + lane / 16) * shape.rows.pitch();
      COSMATI_UNROLL
      for (int f = 0; f < row_fragments; ++f) {
        int const channel = (of_rows * row_fragments + f) * 16 + lane / 8 % 2 * 8;
        arch::load_matrices<true>(a[f], row + (channel < shape.rows.width ? channel * 2 : 0));
      }
      COSMATI_UNROLL
      for (int f = 0; f < column_fragments; f += 2) {
        int const channel = (of_columns * column_fragments + f) * 8;
        if (shape.columns.in_units())
          load_columns(b[f / 2], columns, step, channel);
        else
          load_elements(b[f / 2], columns, step, channel);
      }
      COSMATI_UNROLL
      for (int f = 0; f < row_fragments; ++f) {
        COSMATI_UNROLL
        for (int c = 0; c < column_fragments; ++c)
          arch::multiply_matrices<Element, Element>(sum[f][c], a[f],
                                                    {b[c / 2][c % 2 * 2], b[c / 2][c % 2 * 2 + 1]});
      }
    }
  }

  // Writes the block's sums to its partials; those of warps of the same rows and columns are added in order.
  COSMATI_DEVICE void write(Sums const& sum, float* shared, float* partials) const {
    constexpr int columns = Traits::block_columns, depths = Traits::warps_of_depth;
    int const warp = arch::thread() / 32, lane = arch::thread() % 32;
    int const of_rows = warp % Traits::warps_of_rows, beside = warp / Traits::warps_of_rows;
    int const of_columns = beside % Traits::warps_of_columns, of_depth = beside / Traits::warps_of_columns;
    int const pitch = shape.sum_pitch(), slice = Traits::block_rows * pitch;
    arch::block_barrier();  // all stages have been read
    COSMATI_UNROLL
    for (int f = 0; f < row_fragments; ++f) {
      COSMATI_UNROLL
      for (int c = 0; c < column_fragments; ++c) {
        COSMATI_UNROLL
        for (int half = 0; half < 2; ++half) {
          int const row = (of_rows * row_fragments + f) * 16 + half * 8 + lane / 4;
          int const column = (of_columns * column_fragments + c) * 8 + lane % 4 * 2;
          arch::store(shared + of_depth * slice + row * pitch + column,
                      Vector<float, 2>{{sum[f][c][half * 2], sum[f][c][half * 2 + 1]}});
        }
      }
    }
    arch::block_barrier();
    for (int i = arch::thread(); i < Traits::block_rows * columns; i += Traits::threads) {
      float const* const own = shared + i / columns * pitch + i % columns;
      float total = own[0];
      COSMATI_UNROLL
      for (int other = 1; other < depths; ++other) total += own[other * slice];
      partials[i] = total;
    }
  }

 private:
  // Loads two fragments of columns, of which the second may not exist.
  COSMATI_DEVICE void load_columns(unsigned (&b)[4], unsigned char const* columns, int step,
                                   int first) const {
    int const lane = arch::thread() % 32, channel = first + lane / 16 * 8;
    arch::load_matrices<true>(b, columns + lane % 8 * shape.run_bytes(shape.columns) +
                                     (step * 2 + lane / 8 % 2) * shape.columns.pitch() +
                                     (channel < shape.columns.width ? channel * 2 : 0));
  }
  COSMATI_DEVICE void load_elements(unsigned (&b)[4], unsigned char const* columns, int step,
                                    int first) const {
    int const lane = arch::thread() % 32;
    COSMATI_UNROLL
    for (int i = 0; i < 4; ++i) {
      int const channel = first + i / 2 * 8 + lane / 4;
      unsigned char const* const at = columns + lane % 4 * 2 * shape.run_bytes(shape.columns) +
                                      (step * 2 + i % 2) * shape.columns.pitch() +
                                      (channel < shape.columns.width ? channel * 2 : 0);
      unsigned const low = arch::load<unsigned short>(at);
      b[i] = low | static_cast<unsigned>(arch::load<unsigned short>(at + shape.run_bytes(shape.columns)))
                       << 16;
    }
  }
};

// Grid: (blocks that share the pixels, bands of columns, bands of rows). Dynamic shared memory:
// shape.shared_bytes().
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
wgrad_pointwise_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = WgradPointwise<Traits>;
  WgradPointwiseArguments const& all = params.all;
  Block const block{all, Traits::shape(all)};
  WgradPointwiseShape const& shape = block.shape;
  unsigned char* const stages = arch::shared_storage<typename Traits::SharedStorage>().bytes();
  int const step = arch::grid_x() * shape.pixels();
  Index next = Index{arch::block_x()} * shape.pixels();  // the first pixel of the next stage to be loaded
  int filled = 0;                                        // the stage that receives it
  auto const load = [&] {
    if (next < all.pixels) {
      unsigned char* const to = stages + filled * shape.stage_bytes();
      int const first = static_cast<int>(next);
      block.load(all.rows, shape.rows, first, arch::block_z() * Traits::block_rows, to);
      block.load(all.columns, shape.columns, first, arch::block_y() * Traits::block_columns,
                 to + WgradPointwiseShape::runs * shape.run_bytes(shape.rows));
    }
    arch::commit_copies();
    next += step;
    filled = filled + 1 < Traits::stages ? filled + 1 : 0;
  };
  if constexpr (Traits::early) {
    arch::let_next_kernel_start();
    arch::wait_for_previous_kernel();
  }
  COSMATI_NO_UNROLL
  for (int i = 0; i + 1 < Traits::stages; ++i) load();
  typename Block::Sums sum = {};
  int current = 0;
  COSMATI_NO_UNROLL
  for (Index first = Index{arch::block_x()} * shape.pixels(); first < all.pixels; first += step) {
    arch::wait_copies<Traits::stages - 2>();
    arch::block_barrier();
    load();
    block.multiply(stages + current * shape.stage_bytes(), sum);
    current = current + 1 < Traits::stages ? current + 1 : 0;
  }
  arch::wait_copies<0>();
  constexpr Index area = Index{Traits::block_rows} * Traits::block_columns;
  Index const at =
      (Index{arch::block_x()} * all.row_bands + arch::block_z()) * all.column_bands + arch::block_y();
  block.write(sum, reinterpret_cast<float*>(stages), arch::as_global(all.partials) + at * area);
}

}  // namespace cosmati
