// The direct convolution with parts of the images and the filters in shared memory (Kirk and Hwu, figure
// 16.13, with the tile's own indices, strides, padding, dilation and groups): each block reads every element
// that it needs once. A block processes several images if they are small; a thread keeps the sums of adjacent
// outputs of a column for some filters in registers, and the image elements that their windows share.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/direct_tile.h"
#include "cosmati/conv/phases_in_turn.h"
#include "cosmati/conv/planes.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

template <DirectTiledPolicy policy, class ElementA_, class ElementB_, class Sum_, class Epilogue_,
          class Destination_>
struct DirectTiledTraits {
  using ElementA = ElementA_;
  using ElementB = ElementB_;
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = DirectTiledParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr DirectTile tile = policy.tile;
  static constexpr bool swapped = policy.swapped;
  static constexpr int threads = policy.threads;
  static constexpr int blocks = threads <= 256 ? 512 / threads : 1;  // 128 registers per thread
  static constexpr KnownAxis axis = policy.rows;
  static_assert(axis.taps > 0 || !axis.uneven);
  static constexpr int filter_pitch = filter_pitch_of(tile);  // values between taps in shared memory

  // The weights, then the planes; their sizes are known only at run time.
  struct SharedStorage {
    Sum value[1];
    COSMATI_DEVICE Sum* weights() { return value; }
    COSMATI_DEVICE Sum* planes(DirectTileSchedule const& schedule) { return value + schedule.weights; }
  };
};

template <class Traits>
struct DirectTiled {
  using ElementB = typename Traits::ElementB;
  using Sum = typename Traits::Sum;
  static constexpr DirectTile tile = Traits::tile;
  static constexpr KnownAxis axis = Traits::axis;
  static constexpr int rows = tile.thread_rows, filters = tile.thread_filters, pitch = Traits::filter_pitch;
  static constexpr int vector = vector_of_run(filters, static_cast<int>(sizeof(Sum)));

  SlidingArguments const& window;
  DirectTileSchedule const& schedule;
  ElementB const* filter;  // of this group
  int first_filter;
  Sum* weights;  // (channels, columns of taps, rows of taps, filters)
  Sum* planes;

  // Loads the weights of `channels` channels starting at `first`, taps fastest, which is their order in most
  // layouts. Filters that do not exist are zero.
  COSMATI_DEVICE void load_weights(int first, int channels) const {
    constexpr int batch = 4;
    int const taps = schedule.taps.divisor, all = tile.filters * schedule.planes.channels.divisor * taps;
    for (int begin = arch::thread(); begin < all; begin += batch * Traits::threads) {
      Sum value[batch];
      int place[batch];
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u) {
        int const i = begin + u * Traits::threads;
        int const above_taps = schedule.taps.quotient(i), tap = i - above_taps * taps;
        int const f = schedule.planes.channels.quotient(above_taps);
        int const c = above_taps - f * schedule.planes.channels.divisor;
        int const r = schedule.taps_across.quotient(tap), s = tap - r * window.columns.taps;
        place[u] =
            i < all && c < channels ? ((c * window.columns.taps + s) * window.rows.taps + r) * pitch + f : -1;
        value[u] = Sum{};
        if (place[u] >= 0 && first_filter + f < window.outputs)
          value[u] = arch::number_cast<Sum>(arch::load_constant<ElementB>(
              filter + (first_filter + f) * window.filter_output + (first + c) * window.filter_input +
              r * window.rows.filter_stride + s * window.columns.filter_stride));
      }
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u)
        if (place[u] >= 0) weights[place[u]] = value[u];
    }
  }

  // The position of a tile's first row or column: the lowest one that its windows include.
  COSMATI_DEVICE static int origin(WindowAxis const& window, int output) {
    return window.origin + output * window.output_step +
           (window.tap_step < 0 ? (window.taps - 1) * window.tap_step : 0);
  }
  // The position in the planes of tap 0 of the tile's first output.
  COSMATI_DEVICE static int begin(WindowAxis const& window) {
    return window.tap_step < 0 ? (1 - window.taps) * window.tap_step : 0;
  }

  COSMATI_DEVICE static void load_filters(Sum const* from, Sum (&to)[filters]) {
    COSMATI_UNROLL
    for (int f = 0; f < filters; f += vector) {
      auto const some = arch::load<Vector<Sum, vector>>(from + f);
      COSMATI_UNROLL
      for (int v = 0; v < vector; ++v) to[f + v] = some[v];
    }
  }

  // Adds all taps of one column of the window. `place`: the first output's tap 0; `weight`: tap 0.
  template <int taps>
  COSMATI_DEVICE void add_column(Sum const* place, Sum const* weight, Sum (&sum)[filters][rows]) const {
    constexpr auto known = known_window(taps, axis.output_step, axis.tap_step, rows);
    int const row_pitch = schedule.planes.row_pitch;
    Sum value[known.places], by[filters];
    auto const add = [&](int first, int step) {
      COSMATI_UNROLL
      for (int f = 0; f < filters; ++f) {
        COSMATI_UNROLL
        for (int p = 0; p < rows; ++p)
          sum[f][p] = arch::multiply_add(value[first + p * step], by[f], sum[f][p]);
      }
    };
    if constexpr (taps > 0) {
      COSMATI_UNROLL
      for (int p = 0; p < known.places; ++p) value[p] = place[(known.lowest + p) * row_pitch];
      COSMATI_UNROLL
      for (int r = 0; r < taps; ++r) {
        load_filters(weight + r * pitch, by);
        add(r * axis.tap_step - known.lowest, axis.output_step);
      }
    } else {
      for (int r = 0; r < window.rows.taps; ++r) {
        COSMATI_UNROLL
        for (int p = 0; p < rows; ++p)
          value[p] = place[(r * window.rows.tap_step + p * window.rows.output_step) * row_pitch];
        load_filters(weight + r * pitch, by);
        add(0, 1);
      }
    }
  }

  COSMATI_DEVICE void multiply(int image, int row, int column, int of_filter, int channels,
                               Sum (&sum)[filters][rows]) const {
    if (!axis.uneven || window.rows.taps == axis.taps)
      multiply_taps<axis.taps>(image, row, column, of_filter, channels, sum);
    else if constexpr (axis.taps > 1) {
      if (window.rows.taps > 0) multiply_taps<axis.taps - 1>(image, row, column, of_filter, channels, sum);
    }
  }

  template <int taps>
  COSMATI_DEVICE void multiply_taps(int image, int row, int column, int of_filter, int channels,
                                    Sum (&sum)[filters][rows]) const {
    WindowAxis const& columns = window.columns;
    Sum const* channel = planes + image * schedule.planes.image_pitch +
                         (begin(window.rows) + row * window.rows.output_step) * schedule.planes.row_pitch +
                         begin(columns) + column * columns.output_step;
    Sum const* weight = weights + of_filter;
    COSMATI_NO_UNROLL
    for (int c = 0; c < channels; ++c, channel += schedule.planes.channel_pitch) {
      COSMATI_NO_UNROLL
      for (int s = 0; s < columns.taps; ++s, weight += window.rows.taps * pitch)
        add_column<taps>(channel + s * columns.tap_step, weight, sum);
    }
  }
};

COSMATI_DEVICE DigitArguments const& digits_of(DigitArguments const& d) { return d; }
template <class Destination, class Real>
COSMATI_DEVICE void store_result(DigitArguments const& d, Index offset, Real value) {
  using Element = typename Destination::Element;
  arch::as_global(static_cast<Element*>(d.data))[offset] = arch::number_cast<Element>(value);
}

// Stores a thread's results starting at pixel `pixel` and filter `filter`. If the filters are the rows of D
// (`swapped`), they are elements apart: their offsets, multiples of two steps, take fewer instructions than
// tiles of D do, whose digits need two divisions for each element.
template <class Traits>
COSMATI_DEVICE void store_results(
    typename Traits::Params const& params, Index group, int pixel, int present_rows, int filter,
    int present_filters,
    typename Traits::Sum const (&sum)[Traits::tile.thread_filters][Traits::tile.thread_rows]) {
  using Real = typename Traits::Epilogue::Real;
  constexpr int rows = Traits::tile.thread_rows, filters = Traits::tile.thread_filters;
  int const number = params.window.rows.number;
  if constexpr (Traits::swapped) {
    DigitArguments const& d = digits_of(params.d);
    auto const offset_of = [&](int at) {
      Digits const digits = d.column_extents.digits(at);
      return digits.first * d.column_stride[0] + digits.middle * d.column_stride[1] +
             digits.last * d.column_stride[2];
    };
    Index const of_filter = d.row_stride[2], at = offset_of(pixel);
    Index const of_row = present_rows > 1 ? offset_of(pixel + number) - at : 0;
    Index const first = group * d.batch_stride + filter * of_filter + at;
    COSMATI_UNROLL
    for (int f = 0; f < filters; ++f) {
      if (f >= present_filters) break;
      COSMATI_UNROLL
      for (int p = 0; p < rows; ++p) {
        if (p >= present_rows) break;
        Real value[1] = {arch::number_cast<Real>(sum[f][p])};
        typename Traits::Epilogue::Tile const epilogue(params.epilogue, group, filter + f,
                                                       pixel + p * number);
        Traits::Epilogue::apply(epilogue, 0, 0, 1, value);
        store_result<typename Traits::Destination>(params.d, first + f * of_filter + p * of_row, value[0]);
      }
    }
  } else {
    COSMATI_UNROLL
    for (int p = 0; p < rows; ++p) {
      if (p >= present_rows) break;
      Real value[filters];
      COSMATI_UNROLL
      for (int f = 0; f < filters; ++f) value[f] = arch::number_cast<Real>(sum[f][p]);
      int const at = pixel + p * number;
      typename Traits::Epilogue::Tile const epilogue(params.epilogue, group, at, filter);
      Traits::Epilogue::apply(epilogue, 0, 0, present_filters, value);
      typename Traits::Destination::Tile const d(params.d, group, at, filter);
      d.store(0, 0, present_filters, value);
    }
  }
}

// Computes block `block_of_tiles` of a grid of parts of images * tiles down * tiles across.
template <class Traits>
COSMATI_DEVICE void compute_direct_tiled(typename Traits::Params const& params, int block_of_tiles) {
  using Block = DirectTiled<Traits>;
  using ElementA = typename Traits::ElementA;
  using Sum = typename Traits::Sum;
  constexpr DirectTile tile = Traits::tile;
  SlidingArguments const& window = params.window;
  DirectTileSchedule const& schedule = params.schedule;
  Index const group = schedule.first_group + arch::block_z();
  int const above_columns = schedule.tiles_across.quotient(block_of_tiles);
  int const above_rows = schedule.tiles_down.quotient(above_columns);
  int const first_image = above_rows * schedule.images;
  int const first_row = (above_columns - above_rows * schedule.tiles_down.divisor) * tile.rows;
  int const first_column = (block_of_tiles - above_columns * schedule.tiles_across.divisor) * tile.columns;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  Block const block{window,
                    schedule,
                    arch::as_global(static_cast<typename Traits::ElementB const*>(window.filter)) +
                        group * window.filter_group,
                    arch::block_y() * tile.filters,
                    shared.weights(),
                    shared.planes(schedule)};
  PlaneSource<ElementA> source{arch::as_global(static_cast<ElementA const*>(window.image)) +
                                   group * window.image_group + first_image * window.image_stride,
                               window.image_stride,
                               window.image_input,
                               window.rows.image_stride,
                               window.columns.image_stride,
                               window.rows.size,
                               window.columns.size};
  int const rest = window.images - first_image;
  int const images = rest < schedule.images ? rest : schedule.images;

  constexpr int threads_down = tile.rows / tile.thread_rows,
                filter_groups = tile.filters / tile.thread_filters;
  int const column = arch::thread() % tile.columns, above = arch::thread() / tile.columns;
  int const row = above % threads_down * tile.thread_rows, above_image = above / threads_down;
  int const image = above_image / filter_groups,
            of_filter = above_image % filter_groups * tile.thread_filters;
  int const present_rows = window.rows.outputs - (first_row + row);
  int const present_filters = window.outputs - (block.first_filter + of_filter);
  bool const computes = image < images && first_column + column < window.columns.outputs &&
                        present_rows > 0 && present_filters > 0;

  Sum sum[tile.thread_filters][tile.thread_rows] = {};
  int const channels = schedule.planes.channels.divisor;
  if (schedule.planes.fill) {
    fill_planes<Traits::threads>(block.planes, schedule.images * schedule.planes.image_pitch);
    arch::block_barrier();
  }
  for (int first = 0; first < window.inputs; first += channels, source.data += channels * source.channel) {
    int const present = window.inputs - first < channels ? window.inputs - first : channels;
    if (first > 0) arch::block_barrier();
    load_planes<Traits::threads>(schedule.planes, source, images, present,
                                 Block::origin(window.rows, first_row),
                                 Block::origin(window.columns, first_column), block.planes);
    block.load_weights(first, present);
    arch::block_barrier();
    if (computes) block.multiply(image, row, column, of_filter, present, sum);
  }
  if (!computes) return;
  int const pixel = (first_image + image) * window.image_number + (first_row + row) * window.rows.number +
                    (first_column + column) * window.columns.number;
  store_results<Traits>(params, group, pixel, present_rows, block.first_filter + of_filter, present_filters,
                        sum);
}

// Grid: (blocks of tiles, parts of filters, groups); dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
direct_tiled_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  compute_direct_tiled<Traits>(params, arch::block_x());
}

// The same for a strided data gradient: the blocks of all phases.
template <class Traits, int max_phases>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
direct_tiled_of_phases_kernel(COSMATI_PARAMETER PhasesInTurn<typename Traits::Params, max_phases> phases) {
  PhaseBlock const at = phase_and_block(phases, arch::block_x());
  compute_direct_tiled<Traits>(phases.phase[at.phase].params, at.block);
}

}  // namespace cosmati
