// The data gradient of a convolution (a transposed convolution) whose result has at most 8 channels, on
// tensor cores. A block keeps a tile of dy with its halo in shared memory and the whole filter as fragments;
// the rows of an mma are 16 cells (cell_shape.h), its columns are the channels of one pixel of each cell or,
// if they fit, of all pixels in one of its rows, and its depth is channels of dy. Each position of a cell's
// window is read once for all pixels of the cell, and multiplied by the taps that reach them.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/matrix.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/cell_arguments.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// `fixed`: shape_ is the shape of the launch; otherwise only its numbers of warps and fragments apply.
template <CellShape shape_, bool fixed_, class Element_, class Epilogue_, class Destination_>
struct DgradSmallCMmaTraits {
  using Element = Element_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = CellParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr bool fixed = fixed_;
  static constexpr int threads = shape_.threads(), blocks = shape_.blocks, fragments = shape_.fragments;
  static constexpr int groups = fixed ? shape_.groups() : unfixed_cell_groups;
  // The taps whose fragments stay in registers while a pack is multiplied.
  static constexpr int kept_taps = fixed && shape_.keeps_taps() ? shape_.taps() : 0;
  static constexpr int run = fixed && !shape_.channels_together ? 1
                             : fixed                            ? shape_.channels
                                                                : CellShape::max_channels;
  COSMATI_DEVICE static CellShape shape(CellArguments const& window) {
    if constexpr (fixed) return shape_;
    return window.shape;
  }

  // The filter of all chunks, then two buffers for chunks of dy; the sums of a tile are staged in that of its
  // last chunk. Their sizes are known at launch: shape.shared_bytes(chunks) in total.
  struct alignas(16) SharedStorage {
    // (tap, pack, lane), 8 bytes each
    COSMATI_DEVICE unsigned char* filter() { return reinterpret_cast<unsigned char*>(this); }
    COSMATI_DEVICE unsigned char* buffers(CellShape const& of, int chunks) {
      return filter() + of.filter_bytes(chunks);
    }
  };
};

template <class Traits>
struct DgradSmallCMma {
  using Element = typename Traits::Element;
  static constexpr int size = static_cast<int>(sizeof(Element)), per_word = 4 / size, unit = 16 / size;
  using Sums = float[Traits::fragments][Traits::groups][4];
  using Fragment = Vector<unsigned, 2>;  // one lane's part of a filter fragment

  CellArguments const& window;
  CellShape const shape;
  unsigned char* filter;  // (tap, pack, lane) of the filter's fragments, 8 bytes each

  // Fragments in the layout of mma's b: for column g of the mma, lane 4 * g + t holds the four bytes of depth
  // at byte 4 * t and the four at byte 16 + 4 * t.
  COSMATI_DEVICE void load_filter() const {
    auto const* const from = arch::as_global(static_cast<Element const*>(window.filter));
    int const packs = window.chunks * shape.packs, words = shape.taps() * packs * 64;
    constexpr int together = 8;  // loads in flight
    COSMATI_NO_UNROLL
    for (int first = arch::thread(); first < words; first += together * Traits::threads) {
      Vector<Element, per_word> value[together];
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) {
        int const word = first + i * Traits::threads, lane = word / 2 % 32, pack = word / 64;
        int const tap = pack / packs, r = tap / shape.filter_columns();
        int const along = tap - r * shape.filter_columns(), column = lane / 4;
        int const pixel = column / shape.channels, channel = column - pixel * shape.channels;
        int const s = shape.merges() ? shape.columns.tap(pixel, along) : along;
        int const input = ((pack - tap * packs) * 32 + word % 2 * 16 + lane % 4 * 4) / size;
        COSMATI_UNROLL
        for (int e = 0; e < per_word; ++e) {
          bool const exists =
              word < words && column < shape.mma_columns() && s >= 0 && input + e < window.inputs;
          Index const at = (input + e) * window.filter_input + channel * window.filter_output +
                           r * window.filter_row + s * window.filter_column;
          Element const element = arch::load_constant<Element>(from + (exists ? at : 0));
          value[i][e] = exists ? element : Element{};
        }
      }
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) {
        int const word = first + i * Traits::threads;
        if (word < words) arch::store(filter + word * 4, value[i]);
      }
    }
  }

  // Copies a chunk of the channels of a tile's dy; positions outside dy are zero.
  COSMATI_DEVICE void load_image(CellTile const& tile, int chunk, unsigned char* to) const {
    auto const* const from =
        arch::as_global(static_cast<Element const*>(window.image)) + tile.image * window.image_stride;
    int const top = tile.row * shape.rows.cells + shape.rows.lowest(),
              left = tile.column * shape.columns.cells + shape.columns.lowest();
    int const pieces = 2 * shape.packs;
    COSMATI_NO_UNROLL
    for (int item = arch::thread(); item < shape.halo() * pieces; item += Traits::threads) {
      int const at = item / pieces, piece = item - at * pieces, halo_row = at / shape.halo_columns();
      int const row = top + halo_row, column = left + at - halo_row * shape.halo_columns(),
                input = (chunk * pieces + piece) * unit;
      bool const exists = static_cast<unsigned>(row) < static_cast<unsigned>(window.image_rows) &&
                          static_cast<unsigned>(column) < static_cast<unsigned>(window.image_columns) &&
                          input < window.inputs;
      int const offset = exists ? row * window.image_row + column * window.image_column + input : 0;
      arch::copy_async<16>(to + at * shape.pitch() + piece * 16, from + offset, exists ? 16 : 0);
    }
  }

  // Adds the products of a chunk.
  COSMATI_DEVICE void multiply(unsigned char const* image, int chunk, Sums& sum) const {
    int const lane = arch::thread() % 32, warp = arch::thread() / 32;
    int const packs = window.chunks * shape.packs;
    unsigned char const* first[Traits::fragments];
    COSMATI_UNROLL
    for (int f = 0; f < Traits::fragments; ++f) {
      int cell = (warp * Traits::fragments + f) * 16 + lane % 16;
      if (cell >= shape.cells()) cell = shape.cells() - 1;
      int const row = cell / shape.across, column = cell - row * shape.across;
      first[f] =
          image +
          (row * shape.rows.cells * shape.halo_columns() + column * shape.columns.cells) * shape.pitch() +
          lane / 16 * 16;
    }
    unsigned char const* taps = filter + chunk * shape.packs * 256 + lane * 8;
    // The packs are not unrolled, so that few loads are hoisted and registers suffice.
    COSMATI_NO_UNROLL
    for (int pack = 0; pack < shape.packs; ++pack) {
      Fragment kept[Traits::kept_taps > 0 ? Traits::kept_taps : 1];
      COSMATI_UNROLL
      for (int tap = 0; tap < Traits::kept_taps; ++tap)
        kept[tap] = arch::load<Fragment>(taps + tap * packs * 256);
      COSMATI_UNROLL
      for (int r = 0; r < shape.rows.reach(); ++r) {
        COSMATI_UNROLL
        for (int s = 0; s < shape.columns.reach(); ++s) {
          int const position = (r * shape.halo_columns() + s) * shape.pitch();
          unsigned a[Traits::fragments][4];
          COSMATI_UNROLL
          for (int f = 0; f < Traits::fragments; ++f) arch::load_matrices<false>(a[f], first[f] + position);
          COSMATI_UNROLL
          for (int group = 0; group < shape.groups(); ++group) {
            int const tap = shape.tap(group, r, s);
            if (tap < 0) continue;
            Fragment const b = Traits::kept_taps > 0 ? kept[Traits::kept_taps > 0 ? tap : 0]
                                                     : arch::load<Fragment>(taps + tap * packs * 256);
            unsigned const both[2] = {b[0], b[1]};
            COSMATI_UNROLL
            for (int f = 0; f < Traits::fragments; ++f)
              arch::multiply_matrices<Element, Element>(sum[f][group], a[f], both);
          }
        }
      }
      COSMATI_UNROLL
      for (int f = 0; f < Traits::fragments; ++f) first[f] += 32;
      taps += 256;
    }
  }

  // Writes the sums to shared memory as (cell, place, channel), which is (cell, group, column).
  COSMATI_DEVICE void stage(Sums const& sum, float* staged) const {
    int const lane = arch::thread() % 32, warp = arch::thread() / 32;
    COSMATI_UNROLL
    for (int f = 0; f < Traits::fragments; ++f) {
      COSMATI_UNROLL
      for (int group = 0; group < Traits::groups; ++group) {
        COSMATI_UNROLL
        for (int i = 0; i < 4; ++i) {
          int const cell = (warp * Traits::fragments + f) * 16 + lane / 4 + i / 2 * 8,
                    column = lane % 4 * 2 + i % 2;
          if (cell < shape.cells() && group < shape.groups() && column < shape.mma_columns())
            staged[(cell * shape.groups() + group) * shape.mma_columns() + column] = sum[f][group][i];
        }
      }
    }
  }

  // Returns one element of dx, computed without tensor cores. A fragment of merged columns has zeros for the
  // pixels of a cell that a position of the window does not reach, and zero times infinity is NaN. Sums that
  // are not finite are therefore computed again, only from the positions that reach them.
  COSMATI_DEVICE float recomputed(int image, int h, int w, int channel) const {
    auto const* const dy =
        arch::as_global(static_cast<Element const*>(window.image)) + image * window.image_stride;
    auto const* const taps =
        arch::as_global(static_cast<Element const*>(window.filter)) + channel * window.filter_output;
    int const cell_row = h / shape.rows.places(), cell_column = w / shape.columns.places();
    float sum = 0;
    COSMATI_NO_UNROLL
    for (int r = 0; r < shape.rows.reach(); ++r) {
      int const row = cell_row * shape.rows.cells + shape.rows.lowest() + r;
      int const tap_row = shape.rows.tap(h - cell_row * shape.rows.places(), r);
      if (tap_row < 0 || row < 0 || row >= window.image_rows) continue;
      COSMATI_NO_UNROLL
      for (int s = 0; s < shape.columns.reach(); ++s) {
        int const column = cell_column * shape.columns.cells + shape.columns.lowest() + s;
        int const tap_column = shape.columns.tap(w - cell_column * shape.columns.places(), s);
        if (tap_column < 0 || column < 0 || column >= window.image_columns) continue;
        COSMATI_NO_UNROLL
        for (int k = 0; k < window.inputs; ++k) {
          Element const gradient =
              arch::load_constant<Element>(dy + row * window.image_row + column * window.image_column + k);
          Element const weight =
              arch::load_constant<Element>(taps + k * window.filter_input + tap_row * window.filter_row +
                                           tap_column * window.filter_column);
          sum = arch::multiply_add(arch::number_cast<float>(gradient), arch::number_cast<float>(weight), sum);
        }
      }
    }
    return sum;
  }

  // Stores a tile of dx; adjacent threads have adjacent pixels of a row.
  COSMATI_DEVICE void store(typename Traits::Params const& params, CellTile const& tile,
                            float const* staged) const {
    using Real = typename Traits::Epilogue::Real;
    int const across = shape.columns.places(), of_row = shape.across * across, down = shape.rows.places();
    COSMATI_NO_UNROLL
    for (int item = arch::thread(); item < shape.cells() * shape.places(); item += Traits::threads) {
      int const line = item / of_row, along = item - line * of_row;
      int const h = tile.row * down + line, w = tile.column * across + along;
      if (h >= window.height || w >= window.width) continue;
      int const cell = line / down * shape.across + along / across,
                place = line % down * across + along % across;
      float const* const from = staged + (cell * shape.places() + place) * shape.channels;
      int const pixel = tile.image * window.number_image + h * window.number_row + w * window.number_column;
      int const run = shape.channels_together ? shape.channels : 1;
      COSMATI_NO_UNROLL
      for (int channel = 0; channel < shape.channels; channel += run) {
        Real value[Traits::run];
        COSMATI_UNROLL
        for (int c = 0; c < Traits::run; ++c) {
          float sum = c < run ? from[channel + c] : 0.0f;
          bool const finite = sum - sum == 0.0f;
          if (shape.merges() && !finite) sum = recomputed(tile.image, h, w, channel + c);
          value[c] = arch::number_cast<Real>(sum);
        }
        int const m = window.swapped ? channel : pixel, n = window.swapped ? pixel : channel;
        typename Traits::Epilogue::Tile const epilogue(params.epilogue, 0, m, n);
        Traits::Epilogue::apply(epilogue, 0, 0, run, value);
        typename Traits::Destination::Tile const d(params.d, 0, m, n);
        d.store(0, 0, run, value);
      }
    }
  }
};

// Grid: at most one block per tile; each block computes every gridDim.x-th tile and loads a chunk while it
// multiplies the one before. Dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
dgrad_small_c_mma_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = DgradSmallCMma<Traits>;
  CellArguments const& window = params.window;
  CellShape const shape = Traits::shape(window);
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  Block const block{window, shape, shared.filter()};
  unsigned char* const buffers = shared.buffers(shape, window.chunks);
  int number = arch::block_x(), chunk = 0, buffer = 0;
  if (number >= window.tiles) return;
  block.load_image(CellTile(window, shape, number), 0, buffers);
  arch::commit_copies();
  block.load_filter();
  typename Block::Sums sum = {};
  while (number < window.tiles) {
    bool const last = chunk + 1 == window.chunks;
    int const next = last ? number + arch::grid_x() : number, next_chunk = last ? 0 : chunk + 1;
    unsigned char* const mine = buffers + buffer * shape.buffer_bytes();
    buffer = 1 - buffer;
    if (next < window.tiles)
      block.load_image(CellTile(window, shape, next), next_chunk, buffers + buffer * shape.buffer_bytes());
    arch::commit_copies();
    arch::wait_copies<1>();
    arch::block_barrier();
    block.multiply(mine, chunk, sum);
    arch::block_barrier();
    if (last) {
      auto* const staged = reinterpret_cast<float*>(mine);
      block.stage(sum, staged);
      arch::block_barrier();
      block.store(params, CellTile(window, shape, number), staged);
      arch::block_barrier();
      COSMATI_UNROLL
      for (auto& fragment : sum)
        for (auto& group : fragment)
          for (float& value : group) value = 0;
    }
    number = next, chunk = next_chunk;
  }
}

}  // namespace cosmati
