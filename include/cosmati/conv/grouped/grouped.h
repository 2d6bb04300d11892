// Forward convolutions and data gradients with groups of few channels, on tensor cores, for 16-bit types and
// tf32 whose channels are contiguous:
//   y[n, p, q, k] = sum over taps and the channels of k's group of x[n, h, w, c] * w[k, r, s, c]
// A block keeps the windows of a tile in shared memory, for adjacent groups that fill lines of up to 128
// bytes. The rows of an mma are 16 outputs, its columns 8 channels of the result, and its depth four quads: 8
// bytes of channels each, of any taps. As both operands have the same quads in the same order, a lane reads
// its quad as 8 bytes. No group reads another one's values, so infinities do not spread.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/matrix.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/grouped/grouped_traits.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

template <class Traits>
struct Grouped {
  using Element = typename Traits::Element;
  using Quad = Vector<unsigned, 2>;
  static constexpr int size = static_cast<int>(sizeof(Element)), of_quad = 8 / size;
  // The filter's fragments of a warp: lane 4 * g + t has quad t of each step for channel g of the result.
  using Filters = Quad[Traits::works][Traits::fragments][Traits::steps];

  GroupedArguments const& window;
  GroupedShape const shape;
  int phase_row, phase_column;
  GroupedPhase const rows, columns;
  int first_group;

  struct Tile {
    int image, row, column;  // of the first output
  };
  COSMATI_DEVICE Tile tile(int number) const {
    int const down = window.tiles_across.quotient(number), images = window.tiles_down.quotient(down);
    return {images * shape.images, (down - images * window.tiles_down.divisor) * shape.down,
            (number - down * window.tiles_across.divisor) * shape.across};
  }

  COSMATI_DEVICE int lane_quad() const { return arch::thread() % 4; }
  COSMATI_DEVICE int warp() const { return arch::uniform(arch::thread() / 32); }

  // A quad of the windows of a step.
  struct Place {
    int row, column, channel;
    bool exists;
  };
  COSMATI_DEVICE Place place(int step) const {
    // The four quads of a step are of one tap if its channels fill a multiple of 32 bytes.
    int const quad = step * 4 + (shape.quads() % 4 == 0 ? 0 : lane_quad()), tap = quad / shape.quads();
    int const row = tap / shape.columns.taps, column = tap - row * shape.columns.taps;
    int const of_tap = quad - tap * shape.quads() + (shape.quads() % 4 == 0 ? lane_quad() : 0);
    return {row, column, of_tap * of_quad, row < rows.taps && column < columns.taps};
  }

  COSMATI_DEVICE void load_filters(Filters& filters) const {
    auto const* const from = arch::as_global(static_cast<Element const*>(window.filter));
    COSMATI_UNROLL
    for (int w = 0; w < Traits::works; ++w) {
      int const work = work_of(w), fragments = shape.works() / shape.groups;
      int const group = work / fragments, first = (work - group * fragments) * Traits::fragments * 8;
      bool const used =
          w < shape.works_of_warp() && group < shape.groups && first_group + group < window.groups;
      COSMATI_UNROLL
      for (int f = 0; f < Traits::fragments; ++f) {
        int const output = first + f * 8 + arch::thread() % 32 / 4;
        COSMATI_UNROLL
        for (int step = 0; step < Traits::steps; ++step) {
          Place const at = place(step);
          bool const exists = used && step < shape.steps() && at.exists && output < shape.outputs;
          Index const offset =
              (first_group + group) * window.filter_group + output * window.filter_output +
              at.channel * window.filter_input +
              (rows.first_tap + at.row * window.rows.tap_step) * window.rows.filter_tap +
              (columns.first_tap + at.column * window.columns.tap_step) * window.columns.filter_tap;
          filters[w][f][step] = load_quad(from + (exists ? offset : 0), exists);
        }
      }
    }
  }

  // Copies the windows of a tile; positions outside the image are zero. A thread copies several pieces of a
  // pixel, so that positions are found once for them; adjacent threads copy adjacent ones.
  COSMATI_DEVICE void load_image(Tile const& tile, unsigned char* to) const {
    int const of_piece = shape.copied_bytes() / size, pieces = shape.line_bytes() / shape.copied_bytes();
    int const together = pieces_together(pieces), threads = pieces / together;
    int const slots = Traits::threads / threads, slot = arch::thread() / threads,
              piece = arch::thread() - slot * threads;
    int const top = rows.origin + tile.row * shape.rows.step,
              left = columns.origin + tile.column * shape.columns.step,
              channel = first_group * shape.inputs + piece * of_piece;
    if (slot >= slots) return;
    auto const* const from = arch::as_global(static_cast<Element const*>(window.image)) +
                             tile.image * window.image_stride + channel;
    COSMATI_NO_UNROLL
    for (int at = slot; at < shape.halo(); at += slots) {
      int const line = at / shape.halo_columns(), n = line / shape.halo_rows();
      int const row = top + line - n * shape.halo_rows(), column = left + at - line * shape.halo_columns();
      bool const exists = tile.image + n < window.images &&
                          static_cast<unsigned>(row) < static_cast<unsigned>(window.image_rows) &&
                          static_cast<unsigned>(column) < static_cast<unsigned>(window.image_columns);
      int const of_image = row * window.image_row + column * window.image_column;
      Element const* const pixel = from + (shape.images > 1 ? n * window.image_stride : 0) + of_image;
      unsigned char* const pixel_to = to + at * shape.pitch() + piece * shape.copied_bytes();
      COSMATI_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (i >= together) continue;
        int const ahead = i * threads * of_piece;
        bool const copied = exists && channel + ahead < window.image_channels;
        void const* const source = copied ? pixel + ahead : window.image;
        if (shape.copied_bytes() == 16)
          arch::copy_async<16>(pixel_to + ahead * size, source, copied ? 16 : 0);
        else
          arch::copy_async<8>(pixel_to + ahead * size, source, copied ? 8 : 0);
      }
    }
  }

  // Finds the outputs of the tile.
  COSMATI_DEVICE void find_pixels(Tile const& tile, GroupedPixel* pixels) const {
    COSMATI_NO_UNROLL
    for (int i = arch::thread(); i < shape.passes() * GroupedShape::pass_pixels; i += Traits::threads) {
      int const at = i < shape.pixels() ? i : shape.pixels() - 1, line = at / shape.across;
      int const n = line / shape.down, row = line - n * shape.down, column = at - line * shape.across;
      bool const exists = i < shape.pixels() && tile.image + n < window.images &&
                          tile.row + row < rows.outputs && tile.column + column < columns.outputs;
      int const start = ((n * shape.halo_rows() + row * shape.rows.step) * shape.halo_columns() +
                         column * shape.columns.step) *
                        shape.pitch();
      int const m =
          (tile.image + n) * window.number_image +
          ((tile.row + row) * window.rows.count.divisor + phase_row) * window.number_row +
          ((tile.column + column) * window.columns.count.divisor + phase_column) * window.number_column;
      pixels[i] = {start, exists ? m : -1};
    }
  }

  // Multiplies the first `count` outputs of a pass, and writes the sums to `staged`. `zeros` is a quad of
  // zeros.
  COSMATI_DEVICE void multiply(unsigned char const* image, Filters const& filters, GroupedPixel const* pixels,
                               int count, float* staged, unsigned char const* zeros) const {
    constexpr int together = Traits::rows_together;
    int const lane = arch::thread() % 32, fragments = shape.works() / shape.groups;
    COSMATI_NO_UNROLL
    for (int r = warp() / shape.works(); r * 16 < count && r < GroupedShape::pass_rows;
         r += shape.share() * together) {
      int const pixel = r * 16 + lane / 4, next = shape.share() * 16;
      int start[together][2];
      COSMATI_UNROLL
      for (int i = 0; i < together * 2; ++i)
        start[i / 2][i % 2] = pixels[pixel + i / 2 * next + i % 2 * 8].start;
      COSMATI_UNROLL
      for (int w = 0; w < Traits::works; ++w) {
        if (w >= shape.works_of_warp() || !has_work(w)) continue;
        int const work = work_of(w), group = work / fragments;
        unsigned char const* const of_group = image + group * shape.inputs * size;
        float sum[together][Traits::fragments][4] = {};
        COSMATI_UNROLL
        for (int step = 0; step < Traits::steps; ++step) {
          if (step >= shape.steps()) continue;
          Place const at = place(step);
          int const offset =
              (at.row * shape.rows.dilation * shape.halo_columns() + at.column * shape.columns.dilation) *
                  shape.pitch() +
              at.channel * size;
          bool const exists = (!shape.masked && (step + 1) * 4 <= shape.taps() * shape.quads()) || at.exists;
          COSMATI_UNROLL
          for (int i = 0; i < together; ++i) {
            Quad const low = arch::load<Quad>(exists ? of_group + offset + start[i][0] : zeros),
                       high = arch::load<Quad>(exists ? of_group + offset + start[i][1] : zeros);
            unsigned const a[4] = {low[0], high[0], low[1], high[1]};
            COSMATI_UNROLL
            for (int f = 0; f < Traits::fragments; ++f) {
              unsigned const b[2] = {filters[w][f][step][0], filters[w][f][step][1]};
              arch::multiply_matrices<Element, Element>(sum[i][f], a, b);
            }
          }
        }
        COSMATI_UNROLL
        for (int f = 0; f < Traits::fragments; ++f) {
          int const output = (work - group * fragments) * Traits::fragments * 8 + f * 8 + lane % 4 * 2;
          if (output >= shape.outputs) continue;  // outputs are even
          float* const to = staged + pixel * shape.staged_pitch() + group * shape.outputs + output;
          COSMATI_UNROLL
          for (int i = 0; i < together; ++i) {
            float* const row = to + i * next * shape.staged_pitch();
            arch::store(row, Vector<float, 2>{{sum[i][f][0], sum[i][f][1]}});
            arch::store(row + 8 * shape.staged_pitch(), Vector<float, 2>{{sum[i][f][2], sum[i][f][3]}});
          }
        }
      }
    }
  }

  // Stores the results of a pass; adjacent threads have adjacent channels.
  COSMATI_DEVICE void store(typename Traits::Params const& params, GroupedPixel const* pixels,
                            float const* staged) const {
    using Real = typename Traits::Epilogue::Real;
    int const run = shape.run(), runs = shape.channels() / run;
    COSMATI_NO_UNROLL
    for (int item = arch::thread(); item < GroupedShape::pass_pixels * runs; item += Traits::threads) {
      int const at = item / runs, channel = (item - at * runs) * run;
      int const m = pixels[at].m, n = first_group * shape.outputs + channel,
                left = window.groups * shape.outputs - n, valid = left < run ? left : run;
      if (m < 0 || valid <= 0) continue;
      float const* const from = staged + at * shape.staged_pitch() + channel;
      Real value[Traits::run];
      COSMATI_UNROLL
      for (int c = 0; c < Traits::run; c += 4) {
        if (c >= run) continue;
        auto const four = arch::load<Vector<float, 4>>(from + c);
        COSMATI_UNROLL
        for (int e = 0; e < 4; ++e) value[c + e] = arch::number_cast<Real>(four[e]);
      }
      typename Traits::Epilogue::Tile const epilogue(params.epilogue, 0, m, n);
      Traits::Epilogue::apply(epilogue, 0, 0, valid, value);
      typename Traits::Destination::Tile const d(params.d, 0, m, n);
      d.store(0, 0, valid, value);
    }
  }

 private:
  COSMATI_DEVICE int work_of(int w) const { return (warp() + w * (Traits::threads / 32)) % shape.works(); }
  COSMATI_DEVICE bool has_work(int w) const {
    return warp() + w * (Traits::threads / 32) < shape.works() * shape.share();
  }
  COSMATI_DEVICE Quad load_quad(Element const* from, bool exists) const {
    Quad quad;
    if (shape.together) {
      quad = arch::load_constant<Quad>(from);
    } else {
      Vector<Element, of_quad> elements;
      COSMATI_UNROLL
      for (int e = 0; e < of_quad; ++e)
        elements[e] = arch::load_constant<Element>(from + (exists ? e * window.filter_input : 0));
      quad = __builtin_bit_cast(Quad, elements);
    }
    return exists ? quad : Quad{};
  }
};

// Removes the last digit of an index.
COSMATI_DEVICE int last_digit(int& index, Divisor const& extent) {
  int const above = extent.quotient(index), digit = index - above * extent.divisor;
  index = above;
  return digit;
}

// Grid: parts of the groups, times phases, times slots. A block computes every slots-th tile, and copies the
// next one while it stores. Dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
grouped_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = Grouped<Traits>;
  GroupedArguments const& window = params.window;
  GroupedShape const shape = Traits::shape(window);
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  int slot = arch::block_x();
  int const part = last_digit(slot, window.parts), phase_column = last_digit(slot, window.columns.count),
            phase_row = last_digit(slot, window.rows.count);
  Block const block{window,
                    shape,
                    phase_row,
                    phase_column,
                    window.rows.phase[phase_row],
                    window.columns.phase[phase_column],
                    part * shape.groups};
  if (slot < window.tiles) block.load_image(block.tile(slot), shared.image());
  arch::commit_copies();
  if (arch::thread() < 4) shared.zero[arch::thread()] = 0;
  typename Block::Filters filters;
  block.load_filters(filters);
  COSMATI_NO_UNROLL
  for (int number = slot; number < window.tiles; number += window.slots) {
    block.find_pixels(block.tile(number), shared.pixels(shape));
    arch::wait_copies<0>();
    COSMATI_NO_UNROLL
    for (int pass = 0; pass < shape.passes(); ++pass) {
      int const first = pass * GroupedShape::pass_pixels;
      GroupedPixel const* const pixels = shared.pixels(shape) + first;
      arch::block_barrier();
      block.multiply(shared.image(), filters, pixels, shape.pixels() - first, shared.staged(shape),
                     shared.zeros());
      arch::block_barrier();
      bool const is_last = pass + 1 == shape.passes();
      if (is_last && number + window.slots < window.tiles) {
        block.load_image(block.tile(number + window.slots), shared.image());
        arch::commit_copies();
      }
      block.store(params, pixels, shared.staged(shape));
    }
    arch::block_barrier();
  }
}

}  // namespace cosmati
