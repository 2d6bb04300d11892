// Forward convolutions and data gradients with groups of few channels, on tensor cores, for 16-bit types
// whose channels are contiguous: y[n, p, q, k] = sum over taps and the channels of k's group of x[n, h, w, c] *
// w[k, r, s, c]. A block keeps the windows of a tile in shared memory, for adjacent groups that fill lines of
// up to 128 bytes. The rows of an mma are 16 outputs, its columns 8 channels of the result, and its depth four
// quads: four channels each, of any taps. As both operands have the same quads in the same order, a lane reads
// its quad as 8 bytes. No group reads another one's values: infinities do not spread.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/matrix.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/grouped_arguments.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// `fixed`: shape_ is the shape of the launch; otherwise only its number of warps applies.
template <GroupedShape shape_, bool fixed_, class Element_, class Epilogue_, class Destination_>
struct GroupedTraits {
  using Element = Element_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = GroupedParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr bool fixed = fixed_;
  static constexpr int threads = shape_.threads(), blocks = shape_.blocks, fragments = shape_.fragments;
  static constexpr int steps = fixed ? shape_.steps() : unfixed_grouped_steps;
  static constexpr int works = fixed ? shape_.works_of_warp() : unfixed_grouped_works;
  static constexpr int run = fixed ? shape_.run() : 8;
  static_assert(sizeof(Element) == 2, "a quad is 8 bytes");
  COSMATI_DEVICE static GroupedShape shape(GroupedArguments const& window) {
    if constexpr (fixed) return shape_;
    return window.shape;
  }
  static constexpr int rows_together = fixed ? shape_.rows_together() : 2;
  // Zeros, the windows, the sums of a pass as (pixel, channel), and the outputs; shape.shared_bytes() in total.
  struct alignas(16) SharedStorage {
    unsigned zero[4];
    COSMATI_DEVICE unsigned char const* zeros() { return reinterpret_cast<unsigned char const*>(zero); }
    COSMATI_DEVICE unsigned char* image() { return reinterpret_cast<unsigned char*>(this) + sizeof(zero); }
    COSMATI_DEVICE float* staged(GroupedShape const& of) {
      return reinterpret_cast<float*>(image() + of.image_bytes());
    }
    COSMATI_DEVICE GroupedPixel* pixels(GroupedShape const& of) {
      return reinterpret_cast<GroupedPixel*>(image() + of.image_bytes() + of.staged_bytes());
    }
  };
};

template <class Traits>
struct Grouped {
  using Element = typename Traits::Element;
  using Quad = Vector<unsigned, 2>;
  // The filter's fragments of a warp: lane 4 * g + t has quad t of each step for channel g of the result.
  using Filters = Quad[Traits::works][Traits::fragments][Traits::steps];

  GroupedArguments const& window;
  GroupedShape const shape;
  int phase_row, phase_column;
  GroupedPhase const rows, columns;
  int first_image, first_row, first_column;  // outputs of the phase
  int first_group;

  COSMATI_DEVICE int lane_quad() const { return arch::thread() % 4; }
  COSMATI_DEVICE int warp() const { return arch::uniform(arch::thread() / 32); }

  // A quad of the windows of a step.
  struct Place {
    int row, column, channel;
    bool exists;
  };
  COSMATI_DEVICE Place place(int step) const {
    // The four quads of a step are of one tap if its channels are a multiple of 16.
    int const quad = step * 4 + (shape.quads() % 4 == 0 ? 0 : lane_quad()), tap = quad / shape.quads();
    int const row = tap / shape.columns.taps, column = tap - row * shape.columns.taps;
    int const of_tap = quad - tap * shape.quads() + (shape.quads() % 4 == 0 ? lane_quad() : 0);
    return {row, column, of_tap * 4, row < rows.taps && column < columns.taps};
  }

  COSMATI_DEVICE void load_filters(Filters& filters) const {
    auto const* const from = arch::as_global(static_cast<Element const*>(window.filter));
    COSMATI_UNROLL
    for (int w = 0; w < Traits::works; ++w) {
      int const work = work_of(w), fragments = shape.works() / shape.groups;
      int const group = work / fragments, first = (work - group * fragments) * Traits::fragments * 8;
      bool const used = w < shape.works_of_warp() && group < shape.groups && first_group + group < window.groups;
      COSMATI_UNROLL
      for (int f = 0; f < Traits::fragments; ++f) {
        int const output = first + f * 8 + arch::thread() % 32 / 4;
        COSMATI_UNROLL
        for (int step = 0; step < Traits::steps; ++step) {
          Place const at = place(step);
          bool const exists = used && step < shape.steps() && at.exists && output < shape.outputs;
          Index const offset = (first_group + group) * window.filter_group + output * window.filter_output +
                               at.channel * window.filter_input +
                               (rows.first_tap + at.row * window.rows.tap_step) * window.rows.filter_tap +
                               (columns.first_tap + at.column * window.columns.tap_step) *
                                   window.columns.filter_tap;
          filters[w][f][step] = load_quad(from + (exists ? offset : 0), exists);
        }
      }
    }
  }

  // Copies the windows; positions outside the image are zero. Each thread copies the same piece of every pixel.
  COSMATI_DEVICE void load_image(unsigned char* to) const {
    int const of_piece = shape.copied_bytes() / 2, pieces = shape.line_bytes() / shape.copied_bytes();
    int const pixels_together = Traits::threads / pieces, slot = arch::thread() / pieces,
              piece = arch::thread() - slot * pieces;
    int const top = rows.origin + first_row * shape.rows.step,
              left = columns.origin + first_column * shape.columns.step,
              channel = first_group * shape.inputs + piece * of_piece;
    if (slot >= pixels_together) return;
    auto const* const from = arch::as_global(static_cast<Element const*>(window.image)) +
                             first_image * window.image_stride + channel;
    unsigned char* const piece_to = to + piece * shape.copied_bytes();
    COSMATI_NO_UNROLL
    for (int at = slot; at < shape.halo(); at += pixels_together) {
      int const line = at / shape.halo_columns(), n = line / shape.halo_rows();
      int const row = top + line - n * shape.halo_rows(), column = left + at - line * shape.halo_columns();
      bool const exists = first_image + n < window.images &&
                          static_cast<unsigned>(row) < static_cast<unsigned>(window.image_rows) &&
                          static_cast<unsigned>(column) < static_cast<unsigned>(window.image_columns) &&
                          channel < window.image_channels;
      int const of_image = row * window.image_row + column * window.image_column;
      Element const* const pixel = from + (shape.images > 1 ? n * window.image_stride : 0) + of_image;
      void const* const source = exists ? pixel : window.image;
      if (shape.copied_bytes() == 16)
        arch::copy_async<16>(piece_to + at * shape.pitch(), source, exists ? 16 : 0);
      else
        arch::copy_async<8>(piece_to + at * shape.pitch(), source, exists ? 8 : 0);
    }
  }

  // Finds the outputs of the tile.
  COSMATI_DEVICE void find_pixels(GroupedPixel* pixels) const {
    COSMATI_NO_UNROLL
    for (int i = arch::thread(); i < shape.passes() * GroupedShape::pass_pixels; i += Traits::threads) {
      int const at = i < shape.pixels() ? i : shape.pixels() - 1, line = at / shape.across;
      int const n = line / shape.down, row = line - n * shape.down, column = at - line * shape.across;
      bool const exists = i < shape.pixels() && first_image + n < window.images &&
                          first_row + row < rows.outputs && first_column + column < columns.outputs;
      int const start = ((n * shape.halo_rows() + row * shape.rows.step) * shape.halo_columns() +
                         column * shape.columns.step) *
                        shape.pitch();
      int const m = (first_image + n) * window.number_image +
                    ((first_row + row) * window.rows.count.divisor + phase_row) * window.number_row +
                    ((first_column + column) * window.columns.count.divisor + phase_column) *
                        window.number_column;
      pixels[i] = {start, exists ? m : -1};
    }
  }

  // Multiplies the outputs of a pass, and writes the sums to `staged`. `zeros` is a quad of zeros.
  COSMATI_DEVICE void multiply(unsigned char const* image, Filters const& filters, GroupedPixel const* pixels,
                               float* staged, unsigned char const* zeros) const {
    constexpr int together = Traits::rows_together;
    int const lane = arch::thread() % 32, fragments = shape.works() / shape.groups;
    COSMATI_NO_UNROLL
    for (int r = warp() / shape.works(); r < GroupedShape::pass_rows; r += shape.share() * together) {
      int const pixel = r * 16 + lane / 4, next = shape.share() * 16;
      int start[together][2];
      COSMATI_UNROLL
      for (int i = 0; i < together * 2; ++i)
        start[i / 2][i % 2] = pixels[pixel + i / 2 * next + i % 2 * 8].start;
      COSMATI_UNROLL
      for (int w = 0; w < Traits::works; ++w) {
        if (w >= shape.works_of_warp() || !has_work(w)) continue;
        int const work = work_of(w), group = work / fragments;
        unsigned char const* const of_group = image + group * shape.inputs * 2;
        float sum[together][Traits::fragments][4] = {};
        COSMATI_UNROLL
        for (int step = 0; step < Traits::steps; ++step) {
          if (step >= shape.steps()) continue;
          Place const at = place(step);
          int const offset = (at.row * shape.rows.dilation * shape.halo_columns() +
                              at.column * shape.columns.dilation) *
                                 shape.pitch() +
                             at.channel * 2;
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
      int const at = item / runs, channel = (item - at * runs) * run, group = channel / shape.outputs;
      int const m = pixels[at].m, output = channel - group * shape.outputs;
      if (m < 0 || first_group + group >= window.groups) continue;
      float const* const from = staged + at * shape.staged_pitch() + channel;
      Real value[Traits::run];
      COSMATI_UNROLL
      for (int c = 0; c < Traits::run; c += 4) {
        if (c >= run) continue;
        auto const four = arch::load<Vector<float, 4>>(from + c);
        COSMATI_UNROLL
        for (int e = 0; e < 4; ++e) value[c + e] = arch::number_cast<Real>(four[e]);
      }
      typename Traits::Epilogue::Tile const epilogue(params.epilogue, first_group + group, m, output);
      Traits::Epilogue::apply(epilogue, 0, 0, run, value);
      typename Traits::Destination::Tile const d(params.d, first_group + group, m, output);
      d.store(0, 0, run, value);
    }
  }

 private:
  COSMATI_DEVICE int work_of(int w) const {
    return (warp() + w * (Traits::threads / 32)) % shape.works();
  }
  COSMATI_DEVICE bool has_work(int w) const {
    return warp() + w * (Traits::threads / 32) < shape.works() * shape.share();
  }
  COSMATI_DEVICE Quad load_quad(Element const* from, bool exists) const {
    Quad quad;
    if (shape.together) {
      quad = arch::load_constant<Quad>(from);
    } else {
      Vector<Element, 4> elements;
      COSMATI_UNROLL
      for (int e = 0; e < 4; ++e)
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

// Grid: one block per part of the groups, phase and tile. Dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
grouped_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = Grouped<Traits>;
  GroupedArguments const& window = params.window;
  GroupedShape const shape = Traits::shape(window);
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  int rest = arch::block_x();
  int const part = last_digit(rest, window.parts), phase_column = last_digit(rest, window.columns.count),
            phase_row = last_digit(rest, window.rows.count), column = last_digit(rest, window.tiles_across),
            row = last_digit(rest, window.tiles_down);
  Block const block{window,
                    shape,
                    phase_row,
                    phase_column,
                    window.rows.phase[phase_row],
                    window.columns.phase[phase_column],
                    rest * shape.images,
                    row * shape.down,
                    column * shape.across,
                    part * shape.groups};
  if (block.first_row >= block.rows.outputs || block.first_column >= block.columns.outputs) return;
  block.load_image(shared.image());
  arch::commit_copies();
  block.find_pixels(shared.pixels(shape));
  if (arch::thread() < 4) shared.zero[arch::thread()] = 0;
  typename Block::Filters filters;
  block.load_filters(filters);
  arch::wait_copies<0>();
  for (int pass = 0; pass < shape.passes(); ++pass) {
    GroupedPixel const* const pixels = shared.pixels(shape) + pass * GroupedShape::pass_pixels;
    arch::block_barrier();
    block.multiply(shared.image(), filters, pixels, shared.staged(shape), shared.zeros());
    arch::block_barrier();
    block.store(params, pixels, shared.staged(shape));
  }
}

}  // namespace cosmati
