// The filter gradient of a depthwise convolution by threads that walk down the images, as depthwise_rows
// does: each row of x is loaded and converted once, and multiplied by all rows of dy that it pairs with,
// which stay in registers beside the sums of all taps. Blocks add the sums of their threads, and a second
// kernel those of the blocks, if there are several parts, both in a fixed order, so that the result is
// deterministic.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/words.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/depthwise/depthwise_rows_arguments.h"
#include "cosmati/conv/depthwise/depthwise_rows_image.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// `ragged`: the last run of a row may be shorter.
template <class ElementImage_, class ElementGradient_, class Sum_, class Epilogue_, class Destination_,
          DepthwiseRowsShape shape_, bool ragged_>
struct DepthwiseRowsFilterTraits {
  using ElementImage = ElementImage_;
  using ElementGradient = ElementGradient_;
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = DepthwiseRowsFilterParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr DepthwiseRowsShape shape = shape_;
  static constexpr bool ragged = ragged_;
  static constexpr int threads = depthwise_rows_threads;
  static constexpr int taps = shape.row_taps * shape.column_taps;
  // The threads' sums of all taps, and then those of groups of threads.
  struct SharedStorage {
    Sum sum[taps][shape.vector][threads];
    Sum group[threads];
  };
  static_assert(!shape.transposed);
};

// The registers of one thread: the sums of all taps, and the rows of dy for the next rows of x.
template <class Traits>
struct DepthwiseRowsFilter {
  using Sum = typename Traits::Sum;
  using Gradient = typename Traits::ElementGradient;
  static constexpr DepthwiseRowsShape shape = Traits::shape;
  using Image = DepthwiseRowsImage<typename Traits::ElementImage, shape>;
  using Map = DepthwiseRowsMap<shape>;
  static constexpr int vector = shape.vector, run = shape.run, live_groups = shape.live_groups();
  static constexpr int gradient_bytes = vector * static_cast<int>(sizeof(Gradient));
  using ImageRow = typename Image::Row;
  using GradientRow = arch::Words<gradient_bytes>[run];

  Sum sum[Traits::taps][vector] = {};
  Sum gradient[live_groups][run][vector] = {};

  COSMATI_DEVICE static void load(DepthwiseRowsFilterArguments const& all, Gradient const* line, bool exists,
                                  int valid, GradientRow& to) {
    COSMATI_UNROLL
    for (int o = 0; o < run; ++o)
      to[o] = arch::load_words<gradient_bytes>(line + o * all.gradient_column,
                                               exists && (!Traits::ragged || o < valid));
  }
  // Keeps the row of dy of a step; `i`: the step mod live_groups, a constant after unrolling.
  COSMATI_DEVICE void keep(int i, GradientRow const& row) {
    COSMATI_UNROLL
    for (int o = 0; o < run; ++o) {
      COSMATI_UNROLL
      for (int v = 0; v < vector; ++v) {
        if constexpr (!shape.unrolled) {
          COSMATI_UNROLL
          for (int age = live_groups - 1; age > 0; --age) gradient[age][o][v] = gradient[age - 1][o][v];
        }
        gradient[shape.unrolled ? i : 0][o][v] = arch::widened<Gradient>(row[o], v);
      }
    }
  }

  // Multiplies row `in` of a step, widened, by the row of dy that was loaded `age` steps earlier. An element
  // of x that would pair with a nonexistent column of dy is not multiplied by zero, since it may be infinite.
  COSMATI_DEVICE void add_to(int age, int in, int valid, Sum const (&dy)[run][vector],
                             Sum const (&value)[Image::columns][vector]) {
    int const r = Map::row_tap(age, in, 0);
    if (r >= shape.row_taps) return;
    COSMATI_UNROLL
    for (int o = 0; o < run; ++o) {
      if (Traits::ragged && o >= valid) break;
      COSMATI_UNROLL
      for (int s = 0; s < shape.column_taps; ++s) {
        COSMATI_UNROLL
        for (int v = 0; v < vector; ++v) {
          Sum& to = sum[r * shape.column_taps + s][v];
          to = arch::multiply_add(value[Map::column_of(o, s)][v], dy[o][v], to);
        }
      }
    }
  }
  // Multiplies row `in` of step `step` by those of the latest rows of dy that exist.
  COSMATI_DEVICE void add(int i, int in, int step, int groups, int valid, ImageRow const& row) {
    Sum value[Image::columns][vector];
    Image::widen(row, value);
    COSMATI_UNROLL
    for (int age = 0; age < live_groups; ++age)
      if (static_cast<unsigned>(step - age) < static_cast<unsigned>(groups))
        add_to(age, in, valid, gradient[Map::place(i, age)], value);
  }
  // Adds a part of a single row of dy.
  COSMATI_DEVICE void add_alone(DepthwiseRowsFilterArguments const& all, Gradient const* dy_line, int valid,
                                Image& rows) {
    constexpr int rows_in = shape.rows_in();
    GradientRow dy;
    typename Image::GroupRows row;
    load(all, dy_line, true, valid, dy);
    rows.take_group(all, row);
    keep(0, dy);
    COSMATI_UNROLL
    for (int i = 0; i < live_groups; ++i) {
      COSMATI_UNROLL
      for (int in = 0; in < rows_in; ++in) {
        Sum value[Image::columns][vector];
        Image::widen(row[i][in], value);
        add_to(i, in, valid, gradient[0], value);
      }
    }
  }

  // Adds a part of the rows of a run.
  COSMATI_DEVICE void walk(DepthwiseRowsFilterArguments const& all, int image, int channel, int first_group,
                           int groups, int first_column) {
    constexpr int rows_in = shape.rows_in();
    int const column = all.column_origin + first_column * shape.column_step;
    Image rows(all, image, channel, all.row_origin + first_group * rows_in, column);
    auto const* dy_line = arch::as_global(static_cast<Gradient const*>(all.gradient)) +
                          image * all.gradient_image + channel * all.gradient_channel +
                          first_group * all.gradient_row + first_column * Index{all.gradient_column};
    int const valid = all.gradient_width - first_column, steps = groups + live_groups - 1;
    if constexpr (shape.alone) return add_alone(all, dy_line, valid, rows);
    GradientRow next_dy;
    if constexpr (shape.ahead) load(all, dy_line, true, valid, next_dy);
    constexpr int copies = shape.unrolled ? live_groups : 1;
    COSMATI_NO_UNROLL
    for (int begin = 0; begin < steps; begin += copies) {
      COSMATI_UNROLL
      for (int i = 0; i < copies; ++i) {
        int const step = begin + i;
        if (step >= steps) break;
        if constexpr (!shape.ahead) load(all, dy_line, step < groups, valid, next_dy);
        keep(i, next_dy);
        dy_line += all.gradient_row;
        if constexpr (shape.ahead) load(all, dy_line, step + 1 < groups, valid, next_dy);
        COSMATI_UNROLL
        for (int in = 0; in < rows_in; ++in) {
          ImageRow row;
          rows.take(all, row);
          add(i, in, step, groups, valid, row);
        }
      }
    }
  }
};

// Describes the tensors of one phase of a dilated convolution, and sets `image` to the index of the image;
// returns the number of rows of dy.
template <class Traits>
COSMATI_DEVICE int enter_phase(DepthwiseRowsFilterArguments& all, DepthwiseRowsFilterSchedule const& schedule,
                               int& image) {
  int const rows = schedule.row_phases.divisor, columns = schedule.column_phases.divisor;
  int const rest = schedule.column_phases.quotient(image), of_column = image - rest * columns;
  image = schedule.row_phases.quotient(rest);
  int const of_row = rest - image * rows;
  DepthwiseRowsPhase const row(of_row, rows, all.pad_row, false),
      column(of_column, columns, all.pad_column, false);
  all.row_origin = row.first, all.column_origin = column.first;
  all.image = static_cast<typename Traits::ElementImage const*>(all.image) + row.from * all.image_row +
              column.from * Index{all.image_column};
  all.height = row.positions(all.height, row.from, rows);
  all.width = column.positions(all.width, column.from, columns);
  all.gradient = static_cast<typename Traits::ElementGradient const*>(all.gradient) +
                 of_row * all.gradient_row + of_column * Index{all.gradient_column};
  all.gradient_width = column.positions(all.gradient_width, of_column, columns);
  all.image_row *= rows, all.gradient_row *= rows;
  all.image_column *= columns, all.gradient_column *= columns;
  return row.positions(schedule.groups, of_row, rows);
}

template <class Traits>
COSMATI_DEVICE void store_tap(typename Traits::Params const& params, int channel, int tap,
                              typename Traits::Sum sum) {
  constexpr int columns = Traits::shape.column_taps;
  int const row = tap / columns;
  int const number = row * params.tap_row_number + (tap - row * columns) * params.tap_column_number;
  store_weight<Traits>(params, params.swapped, 0, channel, number, sum);
}

// Adds the threads' sums, and stores those of the block's part, or the results if there is one part.
template <class Traits>
COSMATI_DEVICE void store_partials(typename Traits::Params const& params,
                                   DepthwiseRowsFilter<Traits> const& rows, int tile, int part) {
  using Sum = typename Traits::Sum;
  constexpr int vector = Traits::shape.vector, taps = Traits::taps, threads = Traits::threads;
  DepthwiseRowsFilterSchedule const& schedule = params.schedule;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  int const lanes = schedule.lanes.divisor;
  COSMATI_UNROLL
  for (int t = 0; t < taps; ++t) {
    COSMATI_UNROLL
    for (int v = 0; v < vector; ++v) shared.sum[t][v][arch::thread()] = rows.sum[t][v];
  }
  arch::block_barrier();
  constexpr int of_lane = taps * vector;
  for (int begin = 0; begin < of_lane * lanes; begin += threads) {
    int const results = of_lane * lanes - begin < threads ? of_lane * lanes - begin : threads;
    int const groups = threads / results;
    int const group = arch::thread() / results, result = begin + arch::thread() - group * results;
    int const lane = result % lanes, of = result / lanes, t = of / vector, v = of - t * vector;
    if (group < groups) {
      Sum total = 0;
      for (int slot = group; slot < schedule.slots; slot += groups)
        total += shared.sum[t][v][slot * lanes + lane];
      shared.group[arch::thread()] = total;
    }
    arch::block_barrier();
    int const channel = (tile * lanes + lane) * vector + v;
    if (group == 0 && channel < schedule.channels) {
      Sum total = 0;
      for (int i = 0; i < groups; ++i) total += shared.group[arch::thread() + i * results];
      if (schedule.parts == 1)
        store_tap<Traits>(params, channel, t, total);
      else
        static_cast<Sum*>(params.partials)[(Index{part} * schedule.channels + channel) * taps + t] = total;
    }
    arch::block_barrier();
  }
}

// Grid: tiles of channels * parts; dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::shape.blocks)
depthwise_rows_filter_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  constexpr int vector = Traits::shape.vector, run = Traits::shape.run;
  DepthwiseRowsFilterSchedule const& schedule = params.schedule;
  int const part = schedule.tiles.quotient(arch::block_x());
  int const tile = arch::block_x() - part * schedule.tiles.divisor;
  int const slot = schedule.lanes.quotient(arch::thread());
  int const lane = arch::thread() - slot * schedule.lanes.divisor;
  int const channel = (tile * schedule.lanes.divisor + lane) * vector;
  DepthwiseRowsFilter<Traits> rows;
  if (slot < schedule.slots && channel < schedule.channels) {
    COSMATI_NO_UNROLL
    for (int item = part * schedule.slots + slot; item < schedule.items; item += schedule.items_at_a_time) {
      int const upper = schedule.runs.quotient(item);
      int image = schedule.row_parts.quotient(upper);
      int const first_group = (upper - image * schedule.row_parts.divisor) * schedule.groups_of_part;
      DepthwiseRowsFilterArguments all = params.all;
      int groups = schedule.groups;
      if constexpr (Traits::shape.dilated) groups = enter_phase<Traits>(all, schedule, image);
      int const left = groups - first_group;
      if (Traits::shape.dilated && left <= 0) continue;
      rows.walk(all, image, channel, first_group,
                left < schedule.groups_of_part ? left : schedule.groups_of_part,
                (item - upper * schedule.runs.divisor) * run);
    }
  }
  store_partials<Traits>(params, rows, tile, part);
}

// Adds the parts: a block computes 32 results, threads / 32 threads each. Grid: ceil(channels * taps / 32).
template <class Traits>
COSMATI_KERNEL(Traits::threads, 4)
depthwise_rows_filter_sum_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Sum = typename Traits::Sum;
  constexpr int taps = Traits::taps, results = 32;
  struct Storage {
    Sum group[Traits::threads];
  };
  DepthwiseRowsFilterSchedule const& schedule = params.schedule;
  auto& shared = arch::shared_storage<Storage>();
  Index const all = Index{schedule.channels} * taps;
  Index const index = Index{arch::block_x()} * results + arch::thread() % results;
  Sum const* const partials = static_cast<Sum const*>(params.partials);
  Sum sum = 0;
  if (index < all)
    for (int part = arch::thread() / results; part < schedule.parts; part += Traits::threads / results)
      sum += partials[part * all + index];
  shared.group[arch::thread()] = sum;
  arch::block_barrier();
  if (arch::thread() >= results || index >= all) return;
  COSMATI_UNROLL
  for (int i = 1; i < Traits::threads / results; ++i) sum += shared.group[arch::thread() + i * results];
  int const channel = static_cast<int>(index / taps), tap = static_cast<int>(index - Index{channel} * taps);
  store_tap<Traits>(params, channel, tap, sum);
}

}  // namespace cosmati
