// Depthwise convolution with one filter per channel, and its data gradient, by threads that walk down the
// image. A thread has `run` adjacent columns of results of `vector` channels. It loads each row of its
// columns once, converts it once, and adds it to all rows of results that it reaches, whose sums are in
// registers; the filter is in registers as well. The kernel is bound by memory.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/depthwise/depthwise_rows_image.h"
#include "cosmati/conv/depthwise/depthwise_rows_results.h"

namespace cosmati {

// `transposed`: the data gradient. `vector` > 1 only if channels are contiguous (`channels_last`). A run of a
// data gradient is a multiple of its step. `packed_filter`: the filter is contiguous, (channel, row, column),
// and adjacent threads have adjacent channels.
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
  static constexpr int taps = shape.row_taps * shape.column_taps;
  // The filters of the block's threads, if `packed_filter`.
  struct alignas(shape.vector * sizeof(ElementB)) Run {
    ElementB element[shape.vector];
  };
  struct SharedStorage {
    Run filter[shape.packed_filter ? threads * taps : 1];
  };
  static_assert(shape.vector == 1 || shape.channels_last);
  static_assert(!shape.packed_filter || shape.channels_last);
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
  static constexpr int taps = Traits::taps;
  // Prefetching the next row took 3 to 13 % less time in 16 bits on an H200, except with 7x7 taps; in tf32,
  // up to 16 % more (docs/decisions/0026).
  static constexpr bool prefetches =
      shape.channels_last && !shape.alone && taps < 49 && sizeof(typename Traits::ElementA) == 2;
  using Image = DepthwiseRowsImage<typename Traits::ElementA, shape, prefetches>;
  using Row = typename Image::Row;

  Sum filter[taps][vector];
  Sum sum[live_groups][rows_out][run][vector] = {};

  COSMATI_DEVICE void load_filter(DepthwiseRowsArguments const& all, int channel) {
    using ElementB = typename Traits::ElementB;
    auto const* const from =
        arch::as_global(static_cast<ElementB const*>(all.filter)) + channel * all.filter_channel;
    COSMATI_UNROLL
    for (int t = 0; t < taps; ++t) {
      COSMATI_UNROLL
      for (int v = 0; v < vector; ++v)
        filter[t][v] = arch::number_cast<Sum>(arch::load_constant<ElementB>(
            from + v * all.filter_channel + t / shape.column_taps * all.filter_row +
            t % shape.column_taps * all.filter_column));
    }
  }
  // Adjacent threads would load elements that are a filter apart, so a block first copies its filters to
  // shared memory, `vector` elements at a time. `first`, `count`: its first vector of channels, and the
  // number of vectors of all channels, after which they begin again.
  COSMATI_DEVICE static void copy_filters(DepthwiseRowsArguments const& all, int first, int count) {
    using ElementB = typename Traits::ElementB;
    auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
    auto const* const from = arch::as_global(static_cast<ElementB const*>(all.filter));
    int const total = count * taps, copied = total < Traits::threads * taps ? total : Traits::threads * taps;
    COSMATI_UNROLL
    for (int t = 0; t < taps; ++t) {
      int const i = t * Traits::threads + arch::thread(), at = first * taps + i;
      if (i < copied)
        shared.filter[i] =
            arch::load_constant<typename Traits::Run>(from + (at < total ? at : at - total) * Index{vector});
    }
  }
  // `slot`: the position of the thread's vector of channels among those of the block.
  COSMATI_DEVICE void take_filter(int slot) {
    auto const& shared = arch::shared_storage<typename Traits::SharedStorage>();
    typename Traits::Run run_of[taps];
    COSMATI_UNROLL
    for (int t = 0; t < taps; ++t) run_of[t] = shared.filter[slot * taps + t];
    COSMATI_UNROLL
    for (int t = 0; t < taps; ++t) {
      COSMATI_UNROLL
      for (int v = 0; v < vector; ++v)
        filter[t][v] =
            arch::number_cast<Sum>(run_of[(v * taps + t) / vector].element[(v * taps + t) % vector]);
    }
  }

  // Adds row `in` of a step, widened, to the group that began `age` steps earlier.
  COSMATI_DEVICE void add_to(Sum (&group)[rows_out][run][vector], int age, int in,
                             Sum const (&value)[Image::columns][vector]) const {
    COSMATI_UNROLL
    for (int k = 0; k < rows_out; ++k) {
      int const r = Map::row_tap(age, in, k);
      if (r >= shape.row_taps) continue;
      COSMATI_UNROLL
      for (int s = 0; s < shape.column_taps; ++s) {
        COSMATI_UNROLL
        for (int o = 0; o < run; ++o) {
          int const x = Map::column_of(o, s);
          if (x < 0) continue;
          COSMATI_UNROLL
          for (int v = 0; v < vector; ++v)
            group[k][o][v] =
                arch::multiply_add(value[x][v], filter[r * shape.column_taps + s][v], group[k][o][v]);
        }
      }
    }
  }

  // Adds row `in` of a step to the groups that it reaches; `i`: the step mod live_groups. Both are constants
  // after unrolling.
  COSMATI_DEVICE void add(int i, int in, Row const& row) {
    Sum value[Image::columns][vector];
    Image::widen(row, value);
    COSMATI_UNROLL
    for (int age = 0; age < live_groups; ++age) add_to(sum[Map::place(i, age)], age, in, value);
  }

  // Computes a single group, in `sum[0]`.
  COSMATI_DEVICE void compute_alone(typename Image::GroupRows const& row) {
    COSMATI_UNROLL
    for (int i = 0; i < live_groups; ++i) {
      COSMATI_UNROLL
      for (int in = 0; in < rows_in; ++in) {
        Sum value[Image::columns][vector];
        Image::widen(row[i][in], value);
        add_to(sum[0], i, in, value);
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

// Grid: ceil(threads / Traits::threads); dynamic shared memory: SharedStorage, if the filter is packed.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::shape.blocks)
depthwise_rows_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Rows = DepthwiseRows<Traits>;
  constexpr DepthwiseRowsShape shape = Traits::shape;
  DepthwiseRowsArguments all = params.all;
  DepthwiseRowsSchedule const& schedule = params.schedule;
  int const thread = arch::block_x() * Traits::threads + arch::thread(), last = schedule.threads - 1;
  DepthwiseRowsPlace at = place_of<Traits>(schedule, thread < last ? thread : last);
  DepthwiseRowsResults results;
  if constexpr (shape.dilated) results = enter_phase<Traits>(all, schedule, at.image);
  int const first_group = at.part * schedule.groups_of_part;
  constexpr int step_columns =
      shape.transposed ? shape.run / shape.column_step : shape.run * shape.column_step;
  int const column = all.column_origin + at.run * step_columns;
  int const result_column =
      results.first_column + (all.result_column_origin + at.run * shape.run) * results.right;
  typename Rows::Image image(all, at.image, at.channel, all.row_origin + first_group * Rows::rows_in, column);

  Rows rows;
  [[maybe_unused]] typename Rows::Image::GroupRows rows_of_group;
  if constexpr (shape.alone) image.take_group(all, rows_of_group);
  if constexpr (shape.packed_filter) {
    int const count = schedule.first.divisor, begin = arch::block_x() * Traits::threads,
              first = begin - schedule.first.quotient(begin) * count;
    Rows::copy_filters(all, first, count);
    arch::block_barrier();
    // Only here, after the barrier: later, bf16 filters are spilled.
    if (thread > last) return;
    int const slot = at.channel / shape.vector - first;
    rows.take_filter(slot < 0 ? slot + count : slot);
  } else {
    if (thread > last) return;
    rows.load_filter(all, at.channel);
  }
  int result_row =
      results.first_row +
      (all.result_row_origin + (first_group - (Rows::live_groups - 1)) * Rows::rows_out) * results.down;
  if constexpr (shape.alone) {
    rows.compute_alone(rows_of_group);
    store_group<Traits>(params, at, result_row + (Rows::live_groups - 1) * Rows::rows_out * results.down,
                        result_column, results.right, rows.sum[0], true);
    return;
  }
  int const left = schedule.groups - first_group;
  int const steps = (left < schedule.groups_of_part ? left : schedule.groups_of_part) + Rows::live_groups - 1;
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
