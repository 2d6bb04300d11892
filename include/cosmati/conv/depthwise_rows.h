// Depthwise convolution with one filter per channel, and its data gradient, by threads that walk down the
// image. A thread has `run` adjacent columns of results of `vector` channels. It loads each row of its
// columns once, converts it once, and adds it to all rows of results that it reaches, whose sums are in
// registers; the filter is in registers as well. The kernel is bound by memory.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/words.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/depthwise_rows_arguments.h"
#include "cosmati/conv/depthwise_rows_image.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// The result, of which a thread stores `width` contiguous channels at a time.
template <class Element, int width_>
struct OffsetDestination {
  using Arguments = DigitArguments;
  static constexpr int width = width_;
  COSMATI_DEVICE static Element* at(Arguments const& d, Index offset) {
    return arch::as_global(static_cast<Element*>(d.data)) + offset;
  }
  // `offset`: of the first channel; `stride`: between channels, unless they are contiguous.
  template <class Real, int count>
  COSMATI_DEVICE static void store(Element* to, int offset, Index stride, Real const (&value)[count]) {
    COSMATI_UNROLL
    for (int i = 0; i < count; i += width) {
      float run[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) run[e] = arch::number_cast<float>(value[i + e]);
      arch::store_words(to + offset + i * (width > 1 ? 1 : stride), arch::narrowed<Element>(run));
    }
  }
};

// `transposed`: the data gradient. `vector` > 1 only if channels are contiguous (`channels_last`). A run of a
// data gradient is a multiple of its step. `packed_filter`: the filter is contiguous, (channel, row, column).
template <class ElementA_, class ElementB_, class Sum_, class Epilogue_, class Destination_,
          DepthwiseRowsShape shape_>
struct DepthwiseRowsTraits {
  using ElementA = ElementA_;
  using ElementB = ElementB_;
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = DepthwiseRowsParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr DepthwiseRowsShape shape = shape_;
  static constexpr int threads = depthwise_rows_threads;
  static_assert(shape.vector == 1 || shape.channels_last);
  static_assert(!shape.transposed || shape.run % shape.column_step == 0);
};

// The registers of one thread. Rows of results are counted in groups: a forward group is one row, a group of
// a data gradient is `row_step` rows. Step i reads the rows that complete group i - live_groups + 1.
template <class Traits>
struct DepthwiseRows {
  using Sum = typename Traits::Sum;
  static constexpr DepthwiseRowsShape shape = Traits::shape;
  using Map = DepthwiseRowsMap<shape>;
  static constexpr int vector = shape.vector, run = shape.run;
  static constexpr int live_groups = shape.live_groups(), rows_in = shape.rows_in(),
                       rows_out = shape.rows_out();
  static constexpr int taps = shape.row_taps * shape.column_taps;
  // Prefetching the next row took 3 to 13 % less time in 16 bits on an H200, except with 7x7 taps; in tf32,
  // up to 16 % more (docs/decisions/0026).
  static constexpr bool prefetches =
      shape.channels_last && taps < 49 && sizeof(typename Traits::ElementA) == 2;
  using Image = DepthwiseRowsImage<typename Traits::ElementA, shape, prefetches>;
  using Row = typename Image::Row;

  Sum filter[taps][vector];
  Sum sum[live_groups][rows_out][run][vector] = {};

  COSMATI_DEVICE void load_filter(DepthwiseRowsArguments const& all, int channel) {
    using ElementB = typename Traits::ElementB;
    auto const* const from =
        arch::as_global(static_cast<ElementB const*>(all.filter)) + channel * all.filter_channel;
    if constexpr (shape.packed_filter) {
      constexpr int filter_bytes = vector * static_cast<int>(sizeof(ElementB));
      arch::Words<filter_bytes> run_of[taps];
      COSMATI_UNROLL
      for (int t = 0; t < taps; ++t) run_of[t] = arch::load_words<filter_bytes>(from + t * vector, true);
      COSMATI_UNROLL
      for (int t = 0; t < taps; ++t) {
        COSMATI_UNROLL
        for (int v = 0; v < vector; ++v)
          filter[t][v] = arch::widened<ElementB>(run_of[(v * taps + t) / vector], (v * taps + t) % vector);
      }
    } else {
      COSMATI_UNROLL
      for (int t = 0; t < taps; ++t) {
        COSMATI_UNROLL
        for (int v = 0; v < vector; ++v)
          filter[t][v] = arch::number_cast<Sum>(arch::load_constant<ElementB>(
              from + v * all.filter_channel + t / shape.column_taps * all.filter_row +
              t % shape.column_taps * all.filter_column));
      }
    }
  }

  // Adds row `in` of a step to the groups that it reaches; `i`: the step mod live_groups. Both are constants
  // after unrolling.
  COSMATI_DEVICE void add(int i, int in, Row const& row) {
    Sum value[Image::columns][vector];
    Image::widen(row, value);
    COSMATI_UNROLL
    for (int age = 0; age < live_groups; ++age) {
      COSMATI_UNROLL
      for (int k = 0; k < rows_out; ++k) {
        int const r = Map::row_tap(age, in, k);
        if (r >= shape.row_taps) continue;
        auto& to = sum[Map::place(i, age)][k];
        COSMATI_UNROLL
        for (int s = 0; s < shape.column_taps; ++s) {
          COSMATI_UNROLL
          for (int o = 0; o < run; ++o) {
            int const x = Map::column_of(o, s);
            if (x < 0) continue;
            COSMATI_UNROLL
            for (int v = 0; v < vector; ++v)
              to[o][v] = arch::multiply_add(value[x][v], filter[r * shape.column_taps + s][v], to[o][v]);
          }
        }
      }
    }
  }

  // Begins a group, in the registers of the one that has been stored; the others become one step older.
  COSMATI_DEVICE void advance(int i) {
    COSMATI_UNROLL
    for (int k = 0; k < rows_out; ++k) {
      COSMATI_UNROLL
      for (int o = 0; o < run; ++o) {
        COSMATI_UNROLL
        for (int v = 0; v < vector; ++v) {
          if constexpr (!shape.unrolled) {
            COSMATI_UNROLL
            for (int age = live_groups - 1; age > 0; --age) sum[age][k][o][v] = sum[age - 1][k][o][v];
          }
          sum[Map::place(i, 0)][k][o][v] = {};
        }
      }
    }
  }
};

// The position of a thread's results: their channels, the columns of the run, and the parts of the rows.
struct DepthwiseRowsPlace {
  int channel, run, part, image;
};
template <class Traits>
COSMATI_DEVICE DepthwiseRowsPlace place_of(DepthwiseRowsSchedule const& schedule, int thread) {
  int const upper = schedule.first.quotient(thread), first = thread - upper * schedule.first.divisor;
  int const rest = schedule.second.quotient(upper), second = upper - rest * schedule.second.divisor;
  int const image = schedule.third.quotient(rest), third = rest - image * schedule.third.divisor;
  if (Traits::shape.channels_last) return {first * Traits::shape.vector, second, third, image};
  return {third, first, second, image};
}

// The distances between adjacent rows and columns of results, and the first ones of the phase.
struct DepthwiseRowsResults {
  int down = 1, right = 1, first_row = 0, first_column = 0;
};

// Describes the image of one phase of a dilated convolution, and sets `image` to the index of the image.
template <class Traits>
COSMATI_DEVICE DepthwiseRowsResults enter_phase(DepthwiseRowsArguments& all,
                                                DepthwiseRowsSchedule const& schedule, int& image) {
  using Element = typename Traits::ElementA;
  constexpr DepthwiseRowsShape shape = Traits::shape;
  int const rows = schedule.row_phases.divisor, columns = schedule.column_phases.divisor;
  int const rest = schedule.column_phases.quotient(image), of_column = image - rest * columns;
  image = schedule.row_phases.quotient(rest);
  int const of_row = rest - image * rows;
  DepthwiseRowsPhase const row(of_row, rows, all.pad_row, shape.transposed),
      column(of_column, columns, all.pad_column, shape.transposed);
  all.row_origin = row.first - (shape.transposed ? shape.live_groups() - 1 : 0);
  all.column_origin = column.first - shape.columns_before();
  all.image = static_cast<Element const*>(all.image) + row.from * all.image_row +
              column.from * Index{all.image_column};
  all.height = row.positions(all.height, row.from, rows);
  all.width = column.positions(all.width, column.from, columns);
  all.image_row *= rows, all.image_column *= columns;
  return {rows, columns, of_row, of_column};
}

// Stores the finished group of rows whose first row is `row`.
template <class Traits>
COSMATI_DEVICE void store_group(
    typename Traits::Params const& params, DepthwiseRowsPlace const& at, int row, int column, int right,
    typename Traits::Sum (&sum)[Traits::shape.rows_out()][Traits::shape.run][Traits::shape.vector],
    bool complete) {
  using Real = typename Traits::Epilogue::Real;
  constexpr DepthwiseRowsShape shape = Traits::shape;
  DepthwiseRowsArguments const& all = params.all;
  COSMATI_UNROLL
  for (int k = 0; k < shape.rows_out(); ++k) {
    bool const exists = complete && static_cast<unsigned>(row + k) < static_cast<unsigned>(all.result_height);
    auto const to =
        Traits::Destination::at(params.d, at.image * all.result_image + at.channel * all.result_channel +
                                              (row + k) * all.result_row + column * Index{all.result_column});
    int const pixel = at.image * all.image_number + (row + k) * all.row_number;
    COSMATI_UNROLL
    for (int o = 0; o < shape.run; ++o) {
      Real value[shape.vector];
      COSMATI_UNROLL
      for (int v = 0; v < shape.vector; ++v) {
        value[v] = arch::number_cast<Real>(sum[k][o][v]);
      }
      if (!exists || static_cast<unsigned>(column + o * right) >= static_cast<unsigned>(all.result_width))
        continue;
      int const number = pixel + (column + o * right) * all.column_number;
      typename Traits::Epilogue::Tile const epilogue(params.epilogue, 0, all.swapped ? at.channel : number,
                                                     all.swapped ? number : at.channel);
      Traits::Epilogue::apply(epilogue, 0, 0, shape.vector, value);
      Traits::Destination::store(to, o * right * all.result_column, all.result_channel, value);
    }
  }
}

// Grid: ceil(threads / Traits::threads).
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::shape.blocks)
depthwise_rows_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Rows = DepthwiseRows<Traits>;
  constexpr DepthwiseRowsShape shape = Traits::shape;
  DepthwiseRowsArguments all = params.all;
  DepthwiseRowsSchedule const& schedule = params.schedule;
  int const thread = arch::block_x() * Traits::threads + arch::thread();
  if (thread >= schedule.threads) return;
  DepthwiseRowsPlace at = place_of<Traits>(schedule, thread);
  DepthwiseRowsResults results;
  if constexpr (shape.dilated) results = enter_phase<Traits>(all, schedule, at.image);

  Rows rows;
  rows.load_filter(all, at.channel);
  int const first_group = at.part * schedule.groups_of_part;
  int const left = schedule.groups - first_group;
  int const steps = (left < schedule.groups_of_part ? left : schedule.groups_of_part) + Rows::live_groups - 1;
  constexpr int step_columns =
      shape.transposed ? shape.run / shape.column_step : shape.run * shape.column_step;
  int const column = all.column_origin + at.run * step_columns;
  int const result_column =
      results.first_column + (all.result_column_origin + at.run * shape.run) * results.right;
  typename Rows::Image image(all, at.image, at.channel, all.row_origin + first_group * Rows::rows_in, column);
  int result_row =
      results.first_row +
      (all.result_row_origin + (first_group - (Rows::live_groups - 1)) * Rows::rows_out) * results.down;
  constexpr int copies = shape.unrolled ? Rows::live_groups : 1;
  COSMATI_NO_UNROLL
  for (int begin = 0; begin < steps; begin += copies) {
    COSMATI_UNROLL
    for (int i = 0; i < copies; ++i) {
      if (begin + i >= steps) break;
      rows.advance(i);
      COSMATI_UNROLL
      for (int in = 0; in < Rows::rows_in; ++in) {
        typename Rows::Row row;
        image.take(all, row);
        rows.add(i, in, row);
      }
      store_group<Traits>(params, at, result_row, result_column, results.right,
                          rows.sum[DepthwiseRowsMap<Traits::shape>::place(i, Rows::live_groups - 1)],
                          begin + i >= Rows::live_groups - 1);
      result_row += Rows::rows_out * results.down;
    }
  }
}

}  // namespace cosmati
