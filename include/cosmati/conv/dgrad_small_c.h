// The data gradient of a convolution (a transposed convolution) whose result has few channels, for all phases
// at once. A thread keeps the sums of `cells` cells of stride x stride pixels and all channels in registers,
// and multiplies each value of dy in their windows by the taps that connect it to them: no inserted zeros are
// multiplied, and dy is read once for all phases.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/dgrad_small_c_arguments.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

template <DgradSmallCPolicy policy, class ElementA_, class ElementB_, class Sum_, class Epilogue_,
          class Destination_>
struct DgradSmallCTraits {
  using ElementA = ElementA_;
  using ElementB = ElementB_;
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = DgradSmallCParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr int threads = policy.shape.threads(), blocks = policy.shape.blocks;
  static constexpr int vector = policy.fixed ? policy.shape.vector : 1;
  static constexpr DgradSmallCBound bound =
      policy.fixed ? bound_of(policy.shape) : largest_dgrad_small_c_bound;
  COSMATI_DEVICE static DgradSmallCShape shape(DgradSmallCArguments const& window) {
    if constexpr (policy.fixed) return policy.shape;
    return window.shape;
  }

  // The weights and values of a step; later, the threads' sums in the same space: shape.shared_values()
  // elements.
  struct SharedStorage {
    Sum value[1];
    COSMATI_DEVICE Sum* weights() { return value; }
    COSMATI_DEVICE Sum* values(DgradSmallCShape const& of) { return value + of.weights(); }
    COSMATI_DEVICE Sum* sums() { return value; }  // (sum, thread)
  };
};

template <class Traits>
struct DgradSmallC {
  using ElementA = typename Traits::ElementA;
  using ElementB = typename Traits::ElementB;
  using Sum = typename Traits::Sum;
  static constexpr DgradSmallCBound bound = Traits::bound;
  static constexpr int vector = Traits::vector;
  // (cell, row and column within the cell, channel)
  using Sums = Sum[bound.cells][bound.stride_rows][bound.stride_columns][bound.channels];

  DgradSmallCArguments const& window;
  DgradSmallCShape const shape;
  ElementA const* image;        // of this image and group
  ElementB const* filter;       // of this group
  int first_row, first_column;  // cells
  int first_channel;
  Sum* weights;  // (input, row of taps, column of taps, channel)
  Sum* values;   // (input, halo row, halo column)

  // The source and destination of an item: an access to `vector` channels of one pixel.
  struct Item {
    ElementA const* from;
    Sum* to;
    int input;      // its first channel; far beyond all channels if the item does not exist
    bool is_image;  // otherwise zeros
  };
  COSMATI_DEVICE Item item(int number, int first) const {
    int const at = number / shape.pieces, input = (number - at * shape.pieces) * vector;
    int const halo_row = at / shape.halo_columns();
    int const row = window.top + first_row + halo_row;
    int const column = window.left + first_column + at - halo_row * shape.halo_columns();
    bool const is_image = static_cast<unsigned>(row) < static_cast<unsigned>(window.image_rows) &&
                          static_cast<unsigned>(column) < static_cast<unsigned>(window.image_columns);
    constexpr int far = 1 << 30;
    bool const exists = at < shape.halo();
    int const place = is_image && exists ? row * window.image_row + column * window.image_column : 0;
    return {image + place + Index{first + input} * window.image_input, values + input * shape.pitch() + at,
            exists ? input : far, is_image};
  }

  // Loads `count` channels of dy starting at `first`; pixels outside it are zero. Several items are processed
  // together, so that their loads are in flight at the same time.
  COSMATI_DEVICE void load_values(int first, int count) const {
    int const items = shape.halo() * shape.pieces, step = shape.pieces * vector;
    constexpr int together = is_copied ? 1 : 4, steps_together = is_copied ? 8 : 1;
    COSMATI_NO_UNROLL
    for (int number = arch::thread(); number < items; number += together * Traits::threads) {
      Item mine[together];
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) mine[i] = item(number + i * Traits::threads, first);
      COSMATI_NO_UNROLL
      for (int c = 0; c < count; c += steps_together * step) {
        Vector<ElementA, vector> value[together];
        COSMATI_UNROLL
        for (int s = 0; s < steps_together; ++s) {
          int const channel = c + s * step;
          COSMATI_UNROLL
          for (int i = 0; i < together; ++i) fetch(value[i], mine[i], channel, count);
          COSMATI_UNROLL
          for (int i = 0; i < together; ++i) store(value[i], mine[i], channel, count);
        }
      }
    }
  }

  static constexpr bool is_copied = is_same<ElementA, Sum> && sizeof(Sum) >= 4 && vector == 1;
  COSMATI_DEVICE void fetch(Vector<ElementA, vector>& value, Item const& mine, int channel, int count) const {
    if (is_copied && shape.async) return;
    value = {};
    if (mine.is_image && channel + mine.input < count)
      value = arch::load_constant<Vector<ElementA, vector>>(mine.from + Index{channel} * window.image_input);
  }
  COSMATI_DEVICE void store(Vector<ElementA, vector> const& value, Item const& mine, int channel,
                            int count) const {
    if (channel + mine.input >= count) return;
    Sum* const to = mine.to + channel * shape.pitch();
    if constexpr (is_copied) {
      constexpr int bytes = static_cast<int>(sizeof(Sum));
      if (shape.async)
        return arch::copy_async<bytes>(to, mine.from + Index{channel} * window.image_input,
                                       mine.is_image ? bytes : 0);
    }
    COSMATI_UNROLL
    for (int v = 0; v < vector; ++v) to[v * shape.pitch()] = arch::number_cast<Sum>(value[v]);
  }

  COSMATI_DEVICE void load_weights(int first, int count) const {
    int const of_row = shape.columns.taps * shape.channels, of_input = shape.rows.taps * of_row;
    constexpr int together = 8;  // loads in flight
    COSMATI_NO_UNROLL
    for (int i = arch::thread(); i < count * of_input; i += together * Traits::threads) {
      Sum value[together];
      int place[together];
      COSMATI_UNROLL
      for (int t = 0; t < together; ++t) {
        int const number = i + t * Traits::threads, input = number / of_input;
        int const r = (number - input * of_input) / of_row, rest = number - input * of_input - r * of_row;
        int const s = rest / shape.channels, channel = first_channel + rest - s * shape.channels;
        place[t] = input < count ? (input * shape.rows.taps + r) * shape.row_pitch() + rest : -1;
        value[t] = Sum{};
        if (input < count && channel < window.outputs)
          value[t] = arch::number_cast<Sum>(arch::load_constant<ElementB>(
              filter + Index{first + input} * window.filter_input + channel * window.filter_output +
              r * window.filter_row + s * window.filter_column));
      }
      COSMATI_UNROLL
      for (int t = 0; t < together; ++t)
        if (place[t] >= 0) weights[place[t]] = value[t];
    }
  }

  // Multiplies the channels of part `part`; `count` is the number of channels of all parts.
  COSMATI_DEVICE void multiply(int row, int column, int part, int count, Sums& sum) const {
    constexpr int together = 16 / static_cast<int>(sizeof(Sum));
    COSMATI_NO_UNROLL
    for (int input = part; input < count; input += shape.parts) {
      Sum const* const place =
          values + input * shape.pitch() + row * shape.cells * shape.halo_columns() + column;
      Sum value[bound.value_rows][bound.value_columns];
      COSMATI_UNROLL
      for (int i = 0; i < shape.cells + shape.rows.reach() - 1; ++i) {
        COSMATI_UNROLL
        for (int j = 0; j < shape.columns.reach(); ++j) value[i][j] = place[i * shape.halo_columns() + j];
      }
      COSMATI_UNROLL
      for (int r = 0; r < shape.rows.taps; ++r) {
        Sum const* const taps = weights + (input * shape.rows.taps + r) * shape.row_pitch();
        Sum by[bound.weights];
        COSMATI_UNROLL
        for (int i = 0; i < shape.row_pitch(); i += together) {
          auto const some = arch::load<Vector<Sum, together>>(taps + i);
          COSMATI_UNROLL
          for (int e = 0; e < together; ++e) by[i + e] = some[e];
        }
        COSMATI_UNROLL
        for (int s = 0; s < shape.columns.taps; ++s) {
          COSMATI_UNROLL
          for (int i = 0; i < shape.cells; ++i) {
            COSMATI_UNROLL
            for (int k = 0; k < shape.channels; ++k) {
              Sum& mine = sum[i][shape.rows.place(r)][shape.columns.place(s)][k];
              mine = arch::multiply_add(value[i + shape.rows.window(r)][shape.columns.window(s)],
                                        by[s * shape.channels + k], mine);
            }
          }
        }
      }
    }
  }

  // Writes the sums to shared memory as (sum, thread).
  COSMATI_DEVICE void stage(Sums const& sum, Sum* staged) const {
    int number = 0;
    COSMATI_UNROLL
    for (int i = 0; i < shape.cells; ++i) {
      COSMATI_UNROLL
      for (int r = 0; r < shape.rows.stride; ++r) {
        COSMATI_UNROLL
        for (int s = 0; s < shape.columns.stride; ++s) {
          COSMATI_UNROLL
          for (int k = 0; k < shape.channels; ++k)
            staged[number++ * Traits::threads + arch::thread()] = sum[i][r][s][k];
        }
      }
    }
  }
};

// Grid: (images * tiles down * tiles across, ceil(channels of dx / shape.channels), groups); dynamic shared
// memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
dgrad_small_c_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = DgradSmallC<Traits>;
  using Sum = typename Traits::Sum;
  using Real = typename Traits::Epilogue::Real;
  DgradSmallCArguments const& window = params.window;
  DgradSmallCShape const shape = Traits::shape(window);
  Index const group = window.first_group + arch::block_z();
  int const down_of_all = window.tiles_across.quotient(arch::block_x());
  int const n = window.tiles_down.quotient(down_of_all);
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  Block const block{window,
                    shape,
                    arch::as_global(static_cast<typename Traits::ElementA const*>(window.image)) +
                        group * window.image_group + n * window.image_stride,
                    arch::as_global(static_cast<typename Traits::ElementB const*>(window.filter)) +
                        group * window.filter_group,
                    (down_of_all - n * window.tiles_down.divisor) * shape.cells_down(),
                    (arch::block_x() - down_of_all * window.tiles_across.divisor) * shape.threads_across,
                    arch::block_y() * shape.channels,
                    shared.weights(),
                    shared.values(shape)};

  int const lanes = shape.threads_down * shape.threads_across;
  int const part = arch::thread() / lanes, lane = arch::thread() - part * lanes;
  int const row = lane / shape.threads_across, column = lane - row * shape.threads_across;
  typename Block::Sums sum = {};
  for (int first = 0; first < window.inputs; first += shape.inputs) {
    int const left = window.inputs - first, count = left < shape.inputs ? left : shape.inputs;
    if (first > 0) arch::block_barrier();
    block.load_values(first, count);  // asynchronous copies are in flight while the weights are loaded
    block.load_weights(first, count);
    if (shape.async) arch::commit_copies(), arch::wait_copies<0>();
    arch::block_barrier();
    block.multiply(row, column, part, count, sum);
  }
  arch::block_barrier();
  block.stage(sum, shared.sums());
  arch::block_barrier();

  // The parts share the stores. The loop is rolled, so that the epilogue appears in the code once.
  int const first_h = (block.first_row + row * shape.cells) * shape.rows.stride,
            first_w = (block.first_column + column) * shape.columns.stride;
  bool const along_columns = shape.run == DgradSmallCRun::columns,
             along_channels = shape.run == DgradSmallCRun::channels;
  constexpr int maximum = Traits::bound.run;
  COSMATI_NO_UNROLL
  for (int item = part; item < shape.sums() / shape.run_length(); item += shape.parts) {
    int rest = item;
    int const k = along_channels ? 0 : rest % shape.channels;
    if (!along_channels) rest /= shape.channels;
    int const s = along_columns ? 0 : rest % shape.columns.stride;
    if (!along_columns) rest /= shape.columns.stride;
    int const h = first_h + rest, w = first_w + s, channel = block.first_channel + k;  // rest: (cell, row)
    int const columns_left = window.width - w, channels_left = window.outputs - channel;
    if (h >= window.height || columns_left <= 0 || channels_left <= 0) continue;
    int const left = along_columns ? columns_left : along_channels ? channels_left : 1;
    int const valid = left < shape.run_length() ? left : shape.run_length();
    int const number = (rest * shape.columns.stride + s) * shape.channels + k;
    int const apart = along_columns ? shape.channels : 1;
    Real value[maximum];
    COSMATI_UNROLL
    for (int e = 0; e < maximum; ++e) {
      Sum all{};
      if (e < shape.run_length()) {
        Sum const* const mine = shared.sums() + (number + e * apart) * Traits::threads + lane;
        all = mine[0];
        for (int p = 1; p < shape.parts; ++p) all = all + mine[p * lanes];
      }
      value[e] = arch::number_cast<Real>(all);
    }
    int const pixel = n * window.number_image + h * window.number_row + w * window.number_column;
    int const m = window.swapped ? channel : pixel, at_n = window.swapped ? pixel : channel;
    typename Traits::Epilogue::Tile const epilogue(params.epilogue, group, m, at_n);
    Traits::Epilogue::apply(epilogue, 0, 0, valid, value);
    typename Traits::Destination::Tile const d(params.d, group, m, at_n);
    d.store(0, 0, valid, value);
  }
}

}  // namespace cosmati
