// Filter gradients with groups of few channels, on tensor cores, for 16-bit types and tf32 whose channels are
// contiguous: dw[k, c, r, s] = sum over n, p, q of dy[n, p, q, k] * x[n, h, w, c]. A block keeps tiles of x,
// with their halo, and of dy in shared memory. The rows of an mma are eight channels of x for two taps, its
// columns eight channels of dy, and its depth 16 outputs, in tf32 eight. Where an octet has two groups, half
// of the sums mix groups and are not stored. A second kernel adds the sums of the blocks in a fixed order.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/matrix.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/grouped/grouped_filter_arguments.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// `fixed`: shape_ is the shape of the launch; otherwise only its numbers of warps and fragments apply.
template <GroupedFilterShape shape_, bool fixed_, class Element_, class Epilogue_, class Destination_>
struct GroupedFilterTraits {
  using Element = Element_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = GroupedFilterParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr bool fixed = fixed_;
  static constexpr int threads = shape_.threads(), blocks = shape_.blocks, fragments = shape_.fragments,
                       slices = shape_.slices;
  static constexpr int tap_pairs = fixed ? shape_.tap_pairs() : unfixed_grouped_tap_pairs;
  static_assert(shape_.bytes == static_cast<int>(sizeof(Element)));
  COSMATI_DEVICE static GroupedFilterShape shape(Params const& params) {
    if constexpr (fixed) return shape_;
    return params.shape;
  }
  // shape.shared_bytes() in total.
  struct alignas(16) SharedStorage {
    COSMATI_DEVICE unsigned char* zeros() { return reinterpret_cast<unsigned char*>(this); }
    COSMATI_DEVICE unsigned char* image() { return zeros() + 16; }
    COSMATI_DEVICE unsigned char* gradient(GroupedFilterShape const& of) {
      return zeros() + of.gradient_at();
    }
    COSMATI_DEVICE int* windows(GroupedFilterShape const& of) {
      return reinterpret_cast<int*>(zeros() + of.windows_at());
    }
  };
};

template <class Traits>
struct GroupedFilter {
  using Element = typename Traits::Element;
  static constexpr int size = static_cast<int>(sizeof(Element)), of_piece = 16 / size;
  using Sums = float[Traits::tap_pairs][Traits::fragments][4];

  typename Traits::Params const& params;
  GroupedFilterShape const shape;
  unsigned char *zeros, *image, *gradient;
  int* windows;
  int first_group;

  struct Tile {
    int image, row, column;  // of the first output
  };
  COSMATI_DEVICE Tile tile(int number) const {
    int const down = params.tiles_across.quotient(number), images = params.tiles_down.quotient(down);
    return {images * shape.images, (down - images * params.tiles_down.divisor) * shape.down,
            (number - down * params.tiles_across.divisor) * shape.across};
  }

  // Copies `rows` x `columns` pixels of each image, `channels` of each; positions outside are zero.
  struct Pixels {
    Element const* from;
    Index of_image;
    int of_row, of_column;   // elements
    int height, width;       // of the tensor
    int image, row, column;  // the first pixel
    int rows, columns;       // of a tile
    int channels, first_channel, all_channels;
  };
  COSMATI_DEVICE void load(unsigned char* to, int pitch, Pixels const& all) const {
    int const pieces = all.channels / of_piece, together = pieces_together(pieces),
              threads = pieces / together;
    int const slots = Traits::threads / threads, slot = arch::thread() / threads,
              piece = arch::thread() - slot * threads, channel = all.first_channel + piece * of_piece;
    if (slot >= slots) return;
    Element const* const from = all.from + all.image * all.of_image + channel;
    COSMATI_NO_UNROLL
    for (int at = slot; at < shape.images * all.rows * all.columns; at += slots) {
      int const line = at / all.columns, n = line / all.rows;
      int const row = all.row + line - n * all.rows, column = all.column + at - line * all.columns;
      bool const exists = all.image + n < params.images &&
                          static_cast<unsigned>(row) < static_cast<unsigned>(all.height) &&
                          static_cast<unsigned>(column) < static_cast<unsigned>(all.width);
      int const of_image = row * all.of_row + column * all.of_column;
      Element const* const pixel = from + (shape.images > 1 ? n * all.of_image : 0) + of_image;
      COSMATI_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (i >= together) continue;
        int const ahead = i * threads * of_piece;
        bool const copied = exists && channel + ahead < all.all_channels;
        arch::copy_async<16>(to + at * pitch + piece * 16 + ahead * size, copied ? pixel + ahead : all.from,
                             copied ? 16 : 0);
      }
    }
  }
  COSMATI_DEVICE void load(Tile const& at) const {
    load(image, shape.image_pitch(),
         {arch::as_global(static_cast<Element const*>(params.image)), params.image_stride, params.image_row,
          params.image_column, params.image_rows, params.image_columns, at.image,
          params.top + at.row * shape.rows.step, params.left + at.column * shape.columns.step,
          shape.halo_rows(), shape.halo_columns(), shape.groups * shape.inputs, first_group * shape.inputs,
          params.groups * shape.inputs});
    load(gradient, shape.gradient_pitch(),
         {arch::as_global(static_cast<Element const*>(params.gradient)), params.gradient_image,
          params.gradient_row, params.gradient_column, params.outputs_down, params.outputs_across, at.image,
          at.row, at.column, shape.down, shape.across, shape.groups * shape.outputs,
          first_group * shape.outputs, params.groups * shape.outputs});
  }

  // Finds the windows of a tile's outputs.
  COSMATI_DEVICE void find_windows(Tile const& at) const {
    COSMATI_NO_UNROLL
    for (int pixel = arch::thread(); pixel < shape.windows(); pixel += Traits::threads) {
      int const line = pixel / shape.across, n = line / shape.down, row = line - n * shape.down,
                column = pixel - line * shape.across;
      bool const exists = pixel < shape.pixels() && at.image + n < params.images &&
                          at.row + row < params.outputs_down && at.column + column < params.outputs_across;
      int const first = (n * shape.halo_rows() + row * shape.rows.step) * shape.halo_columns() +
                        column * shape.columns.step;
      windows[pixel] = exists ? first * shape.image_pitch() : -1;
    }
  }

  // The octet of x and the first octet of dy of a work item.
  struct Octets {
    int image, gradient;
  };
  COSMATI_DEVICE Octets octets(int work) const {
    int const of_image = shape.octets_of_groups() / Traits::fragments, octet = work / of_image;
    return {octet, shape.first_octet(octet) + (work - octet * of_image) * Traits::fragments};
  }

  // Adds the products of a tile: those of every share-th pass. Outputs that do not exist multiply zeros, even
  // where x exists.
  COSMATI_DEVICE void multiply(int work, int first_pass, Sums& sum) const {
    int const lane = arch::thread() % 32;
    Octets const octet = octets(work);
    int const of_half = lane / 16 * 8 + lane % 8, step = shape.share() * GroupedFilterShape::pass_pixels;
    int first = first_pass * GroupedFilterShape::pass_pixels;
    if (first >= shape.pixels()) return;
    int output = windows[first + lane], starts[2] = {windows[first + of_half], windows[first + 16 + of_half]};
    COSMATI_NO_UNROLL
    for (; first < shape.pixels(); first += step) {
      int const next =
          first + step < shape.pixels() ? first + step : 0;  // looked up while this one multiplies
      int const next_output = windows[next + lane],
                next_starts[2] = {windows[next + of_half], windows[next + 16 + of_half]};
      unsigned b[Traits::fragments][4];  // matrices of 8 outputs each
      COSMATI_UNROLL
      for (int f = 0; f < Traits::fragments; ++f)
        arch::load_matrices<true>(
            b[f], output >= 0 ? gradient + (first + lane) * shape.gradient_pitch() + (octet.gradient + f) * 16
                              : zeros);
      COSMATI_UNROLL
      for (int half = 0; half < 2; ++half) {
        // Matrices: (outputs 0 to 7, first tap), (0 to 7, second tap), (8 to 15, first), (8 to 15, second).
        int const start = starts[half];
        COSMATI_UNROLL
        for (int pair = 0; pair < Traits::tap_pairs; ++pair) {
          if (pair >= shape.tap_pairs()) continue;
          int const offset = lane / 8 % 2 != 0 && pair * 2 + 1 < shape.taps() ? tap_offset(pair * 2 + 1)
                                                                              : tap_offset(pair * 2);
          unsigned a[4];
          arch::load_matrices<true>(a, start >= 0 ? image + start + offset + octet.image * 16 : zeros);
          COSMATI_UNROLL
          for (int f = 0; f < Traits::fragments; ++f) {
            unsigned const both[2] = {b[f][half * 2], b[f][half * 2 + 1]};
            arch::multiply_matrices<Element, Element>(sum[pair][f], a, both);
          }
        }
      }
      output = next_output, starts[0] = next_starts[0], starts[1] = next_starts[1];
    }
  }

  // The same in tf32: ldmatrix transposes elements of 16 bits only, so lanes load single elements.
  COSMATI_DEVICE void multiply_elements(int work, int first_pass, Sums& sum) const {
    int const lane = arch::thread() % 32, channel = lane / 4, output = lane % 4;
    Octets const octet = octets(work);
    unsigned char const* const x = image + octet.image * 8 * size + channel * size;
    unsigned char const* const dy = gradient + octet.gradient * 8 * size + channel * size;
    auto const load = [](unsigned char const* from, int start) {
      return start >= 0 ? arch::load<unsigned>(from) : 0u;
    };
    COSMATI_NO_UNROLL
    for (int first = first_pass * GroupedFilterShape::pass_pixels; first < shape.pixels();
         first += shape.share() * GroupedFilterShape::pass_pixels) {
      COSMATI_UNROLL
      for (int step = 0; step < GroupedFilterShape::pass_pixels; step += 8) {
        int const at = first + step + output, starts[2] = {windows[at], windows[at + 4]};
        unsigned b[Traits::fragments][2];
        COSMATI_UNROLL
        for (int f = 0; f < Traits::fragments; ++f) {
          COSMATI_UNROLL
          for (int i = 0; i < 2; ++i)
            b[f][i] = load(dy + (at + i * 4) * shape.gradient_pitch() + f * 8 * size, starts[i]);
        }
        COSMATI_UNROLL
        for (int pair = 0; pair < Traits::tap_pairs; ++pair) {
          if (pair >= shape.tap_pairs()) continue;
          // Elements of outputs 0 to 3 for the first and the second tap, then of outputs 4 to 7.
          unsigned a[4];
          COSMATI_UNROLL
          for (int i = 0; i < 4; ++i) {
            int const tap = pair * 2 + i % 2, start = starts[i / 2];
            a[i] = load(x + start + tap_offset(tap < shape.taps() ? tap : pair * 2), start);
          }
          COSMATI_UNROLL
          for (int f = 0; f < Traits::fragments; ++f)
            arch::multiply_matrices<Element, Element>(sum[pair][f], a, b[f]);
        }
      }
    }
  }

  // Stores a warp's sums; `part` is the number of the warp's share among those of all blocks.
  COSMATI_DEVICE void store(int work, int part, Sums const& sum) const {
    int const lane = arch::thread() % 32;
    Octets const octet = octets(work);
    int const of_block = octet.image * 8 + lane / 4, group = of_block / shape.inputs,
              channel = of_block - group * shape.inputs;
    float* const to = arch::as_global(params.partials) + Index{part} * params.weights;
    COSMATI_UNROLL
    for (int pair = 0; pair < Traits::tap_pairs; ++pair) {
      COSMATI_UNROLL
      for (int f = 0; f < Traits::fragments; ++f) {
        COSMATI_UNROLL
        for (int i = 0; i < 4; ++i) {
          int const tap = pair * 2 + i / 2, filter = (octet.gradient + f) * 8 + lane % 4 * 2 + i % 2;
          if (tap >= shape.taps() || filter / shape.outputs != group || first_group + group >= params.groups)
            continue;
          to[((first_group * shape.outputs + filter) * shape.taps() + tap) * shape.inputs + channel] =
              sum[pair][f][i];
        }
      }
    }
  }

 private:
  COSMATI_DEVICE int tap_offset(int tap) const {
    int const row = tap / shape.columns.taps, column = tap - row * shape.columns.taps;
    return (row * shape.rows.dilation * shape.halo_columns() + column * shape.columns.dilation) *
           shape.image_pitch();
  }
};

// Grid: parts of the groups times parts of the tiles. Dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
grouped_filter_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = GroupedFilter<Traits>;
  GroupedFilterShape const shape = Traits::shape(params);
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  int const part = params.group_parts.quotient(arch::block_x());
  Block const block{params,
                    shape,
                    shared.zeros(),
                    shared.image(),
                    shared.gradient(shape),
                    shared.windows(shape),
                    (arch::block_x() - part * params.group_parts.divisor) * shape.groups};
  int const warp = arch::uniform(arch::thread() / 32), share = warp / shape.works(),
            work = warp - share * shape.works();
  if (arch::thread() < 4) arch::store(shared.zeros() + arch::thread() * 4, 0u);
  typename Block::Sums sum = {};
  COSMATI_NO_UNROLL
  for (int number = part; number < params.tiles; number += params.parts) {
    auto const tile = block.tile(number);
    arch::block_barrier();
    block.load(tile);
    arch::commit_copies();
    block.find_windows(tile);
    arch::wait_copies<0>();
    arch::block_barrier();
    if (share >= shape.share()) continue;
    if constexpr (Block::size == 2)
      block.multiply(work, share, sum);
    else
      block.multiply_elements(work, share, sum);
  }
  if (share < shape.share()) block.store(work, part * shape.share() + share, sum);
}

}  // namespace cosmati
