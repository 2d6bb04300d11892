// The filter gradient for small filters and many images: dw[k, c, r, s] = sum of dy[n, k, p, q] * x[n, c, h,
// w]. A block keeps the sums of all its filters in registers (each thread those of a row of taps of one
// channel for some filters) and iterates over images that it loads into shared memory. A second kernel adds
// the blocks' sums in a fixed order. The sum of dy, the bias gradient, can be computed along with it.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/planes.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

template <WgradDirectPolicy policy, class ElementImage_, class ElementGradient_, class Sum_, class Epilogue_,
          class Destination_>
struct WgradDirectTraits {
  using ElementImage = ElementImage_;
  using ElementGradient = ElementGradient_;
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = WgradDirectParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr bool swapped = policy.swapped;
  static constexpr int threads = policy.threads, run = policy.run, filters = policy.filters;
  static constexpr int blocks = 512 / threads > 0 ? 512 / threads : 1;
  static constexpr int taps = policy.taps, output_step = policy.output_step, tap_step = policy.tap_step;
  static constexpr int places = (run - 1) * output_step + (taps - 1) * tap_step + 1;
  static constexpr int vector = vector_of_run(run, static_cast<int>(sizeof(Sum)));

  // The planes of x and dy; later, the threads' sums in the same space. The extents are known only at run
  // time.
  struct SharedStorage {
    Sum value[1];
    COSMATI_DEVICE Sum* image() { return value; }
    COSMATI_DEVICE Sum* gradient(WgradTileSchedule const& schedule) { return value + schedule.gradient_at; }
    // The i-th of the `weights` sums of a part.
    COSMATI_DEVICE Sum& weight_sum(int part, int weights, int i) { return value[part * weights + i]; }
    COSMATI_DEVICE Sum* bias_sums(WgradTileSchedule const& schedule, int weights) {
      return value + schedule.parts * weights;
    }
  };

  static constexpr int sum_threads = 512, sum_lanes = 32;
  struct SumStorage {
    Sum sum[sum_threads / sum_lanes][sum_lanes];
  };
};

template <class Traits>
struct WgradDirect {
  using Sum = typename Traits::Sum;
  static constexpr int run = Traits::run, filters = Traits::filters;
  static constexpr int taps = Traits::taps, vector = Traits::vector;

  // Adds adjacent outputs of a row. `x`: the first output's tap 0; `dy`: the output of the first filter;
  // those of the thread's filters are `pitch` apart.
  COSMATI_DEVICE static void add_outputs(int outputs, Sum const* x, Sum const* dy, int pitch,
                                         Sum (&sum)[filters][taps]) {
    int q = 0;
    COSMATI_NO_UNROLL
    for (; q + run <= outputs; q += run, x += run * Traits::output_step, dy += run) {
      Sum value[Traits::places];
      COSMATI_UNROLL
      for (int p = 0; p < Traits::places; ++p) value[p] = x[p];
      COSMATI_UNROLL
      for (int k = 0; k < filters; ++k) {
        COSMATI_UNROLL
        for (int first = 0; first < run; first += vector) {
          auto const by = arch::load<Vector<Sum, vector>>(dy + k * pitch + first);
          COSMATI_UNROLL
          for (int v = 0; v < vector; ++v) {
            COSMATI_UNROLL
            for (int s = 0; s < taps; ++s)
              sum[k][s] = arch::multiply_add(value[(first + v) * Traits::output_step + s * Traits::tap_step],
                                             by[v], sum[k][s]);
          }
        }
      }
    }
    COSMATI_NO_UNROLL
    for (; q < outputs; ++q, x += Traits::output_step, ++dy) {
      COSMATI_UNROLL
      for (int k = 0; k < filters; ++k) {
        COSMATI_UNROLL
        for (int s = 0; s < taps; ++s)
          sum[k][s] = arch::multiply_add(x[s * Traits::tap_step], dy[k * pitch], sum[k][s]);
      }
    }
  }
};

// A thread's share of a block's work: a part of the segments of rows of outputs, a group of filters (of which
// adjacent ones belong to adjacent groups), a channel and a row of taps; for the bias gradient, a part of the
// rows of one filter.
struct WgradDirectPart {
  int part, filter_group, channel, tap_row;
  int bias_part, bias_filter;
};
COSMATI_DEVICE WgradDirectPart wgrad_direct_part(SlidingArguments const& window,
                                                 WgradTileSchedule const& schedule) {
  int const part = schedule.slots.quotient(arch::thread());
  int const slot = arch::thread() - part * schedule.slots.divisor;
  int const above_rows = schedule.taps_down.quotient(slot), tap_row = slot - above_rows * window.rows.taps;
  int const filter_group = schedule.channels.quotient(above_rows);
  int const channel = above_rows - filter_group * window.inputs;
  int const bias_part = schedule.block_filters.quotient(arch::thread());
  return {part, filter_group, channel, tap_row, bias_part, arch::thread() - bias_part * schedule.filters};
}

// Adds the products of a pass to the sums of weights.
template <class Traits>
COSMATI_DEVICE void add_weights(SlidingArguments const& window, WgradTileSchedule const& schedule,
                                WgradDirectPart const& at, typename Traits::Sum const* planes,
                                typename Traits::Sum const* gradients, int images, int rows,
                                typename Traits::Sum (&sum)[Traits::filters][Traits::taps]) {
  using Sum = typename Traits::Sum;
  Sum const* const from = planes + at.channel * schedule.image.channel_pitch +
                          at.tap_row * window.rows.tap_step * schedule.image.row_pitch;
  Sum const* const by = gradients + at.filter_group * schedule.gradient.channel_pitch;
  int const segments = schedule.segments.divisor;
  COSMATI_NO_UNROLL
  for (int i = at.part; i < images * schedule.rows * segments; i += schedule.parts) {
    int const line = schedule.segments.quotient(i), q = (i - line * segments) * schedule.segment;
    int const n = schedule.tile_rows.quotient(line), p = line - n * schedule.rows;
    if (p >= rows) continue;
    int const left = window.columns.outputs - q;
    WgradDirect<Traits>::add_outputs(
        left < schedule.segment ? left : schedule.segment,
        from + n * schedule.image.image_pitch + p * window.rows.output_step * schedule.image.row_pitch +
            q * Traits::output_step,
        by + n * schedule.gradient.image_pitch + p * schedule.gradient.row_pitch + q,
        schedule.filter_groups * schedule.gradient.channel_pitch, sum);
  }
}

// Adds the gradients of a pass to the sum of the bias gradient.
template <int vector, class Sum>
COSMATI_DEVICE void add_bias(SlidingArguments const& window, WgradTileSchedule const& schedule,
                             WgradDirectPart const& at, Sum const* gradients, int images, int rows,
                             Sum& bias) {
  for (int line = at.bias_part; line < images * schedule.rows; line += schedule.bias_parts) {
    int const n = schedule.tile_rows.quotient(line), p = line - n * schedule.rows;
    if (p >= rows) continue;
    Sum const* const row = gradients + n * schedule.gradient.image_pitch +
                           at.bias_filter * schedule.gradient.channel_pitch + p * schedule.gradient.row_pitch;
    int q = 0;
    for (; q + vector <= window.columns.outputs; q += vector) {
      auto const some = arch::load<Vector<Sum, vector>>(row + q);
      COSMATI_UNROLL
      for (int v = 0; v < vector; ++v) bias += some[v];
    }
    for (; q < window.columns.outputs; ++q) bias += row[q];
  }
}

// Adds the threads' sums in order, and writes them to global memory. The sums replace the planes.
template <class Traits>
COSMATI_DEVICE void write_partials(typename Traits::Params const& params, WgradDirectPart const& at,
                                   Index group, int first_filter, int filters,
                                   typename Traits::SharedStorage& shared,
                                   typename Traits::Sum const (&sum)[Traits::filters][Traits::taps],
                                   typename Traits::Sum bias) {
  using Sum = typename Traits::Sum;
  constexpr int taps = Traits::taps;
  SlidingArguments const& window = params.window;
  WgradTileSchedule const& schedule = params.schedule;
  int const row_taps = window.inputs * window.rows.taps * taps, all = schedule.filters * row_taps;
  arch::block_barrier();
  if (at.part < schedule.parts) {
    Sum* const to = &shared.weight_sum(
        at.part, all, at.filter_group * row_taps + (at.channel * window.rows.taps + at.tap_row) * taps);
    COSMATI_UNROLL
    for (int k = 0; k < Traits::filters; ++k) {
      COSMATI_UNROLL
      for (int s = 0; s < taps; ++s) to[k * schedule.filter_groups * row_taps + s] = sum[k][s];
    }
  }
  Sum* const biases = shared.bias_sums(schedule, all);
  if (at.bias_part < schedule.bias_parts) biases[arch::thread()] = bias;
  arch::block_barrier();
  Sum* const partials =
      static_cast<Sum*>(params.partials) + (arch::block_x() * schedule.groups + group) * schedule.weights;
  for (int w = arch::thread(); w < filters * row_taps; w += Traits::threads) {
    Sum total = 0;
    for (int i = 0; i < schedule.parts; ++i) total += shared.weight_sum(i, all, w);
    partials[first_filter * row_taps + w] = total;
  }
  if (params.bias != nullptr && arch::thread() < filters) {
    Sum total = 0;
    for (int i = 0; i < schedule.bias_parts; ++i) total += biases[i * schedule.filters + arch::thread()];
    partials[window.outputs * row_taps + first_filter + arch::thread()] = total;
  }
}

// Grid: (blocks that share the passes, parts of filters, groups); dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::blocks)
wgrad_direct_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Sum = typename Traits::Sum;
  using Image = typename Traits::ElementImage;
  using Gradient = typename Traits::ElementGradient;
  constexpr int threads = Traits::threads;
  SlidingArguments const& window = params.window;
  WgradTileSchedule const& schedule = params.schedule;
  Index const group = schedule.first_group + arch::block_z();
  int const first_filter = arch::block_y() * schedule.filters;
  int const filters =
      window.outputs - first_filter < schedule.filters ? window.outputs - first_filter : schedule.filters;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  Sum* const planes = shared.image();
  Sum* const gradients = shared.gradient(schedule);
  PlaneSource<Image> const image{
      arch::as_global(static_cast<Image const*>(window.image)) + group * window.image_group,
      window.image_stride,
      window.image_input,
      window.rows.image_stride,
      window.columns.image_stride,
      window.rows.size,
      window.columns.size};
  PlaneSource<Gradient> const gradient{arch::as_global(static_cast<Gradient const*>(params.gradient)) +
                                           group * params.gradient_group +
                                           first_filter * params.gradient_channel,
                                       params.gradient_image,
                                       params.gradient_channel,
                                       params.gradient_row,
                                       params.gradient_column,
                                       window.rows.outputs,
                                       window.columns.outputs};
  WgradDirectPart const at = wgrad_direct_part(window, schedule);
  Sum sum[Traits::filters][Traits::taps] = {};
  Sum bias = 0;

  for (int pass = arch::block_x(); pass < schedule.passes; pass += arch::grid_x()) {
    int const chunk = schedule.tiles_down.quotient(pass);
    int const first_row = (pass - chunk * schedule.tiles_down.divisor) * schedule.rows;
    int const first_image = chunk * schedule.images;
    int const images =
        window.images - first_image < schedule.images ? window.images - first_image : schedule.images;
    int const rows =
        window.rows.outputs - first_row < schedule.rows ? window.rows.outputs - first_row : schedule.rows;
    if (pass != arch::block_x()) arch::block_barrier();
    if (schedule.image.fill) {
      fill_planes<threads>(planes, schedule.images * schedule.image.image_pitch);
      arch::block_barrier();
    }
    PlaneSource<Image> x = image;
    x.data += first_image * image.image;
    load_planes<threads>(schedule.image, x, images, window.inputs,
                         window.rows.origin + first_row * window.rows.output_step, window.columns.origin,
                         planes);
    PlaneSource<Gradient> dy = gradient;
    dy.data += first_image * gradient.image;
    if (schedule.gradient.dense)
      load_dense_planes<threads, Traits::vector>(schedule.gradient, dy, images, filters, first_row,
                                                 gradients);
    else
      load_planes<threads>(schedule.gradient, dy, images, filters, first_row, 0, gradients);
    arch::block_barrier();
    if (at.part < schedule.parts)
      add_weights<Traits>(window, schedule, at, planes, gradients, images, rows, sum);
    if (params.bias != nullptr && at.bias_part < schedule.bias_parts && at.bias_filter < filters)
      add_bias<Traits::vector>(window, schedule, at, gradients, images, rows, bias);
  }
  write_partials<Traits>(params, at, group, first_filter, filters, shared, sum, bias);
}

// Grid: (ceil(weights / sum_lanes), 1, groups); block: sum_threads; dynamic shared memory: SumStorage.
template <class Traits>
COSMATI_KERNEL(Traits::sum_threads, 2)
wgrad_direct_sum_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Sum = typename Traits::Sum;
  constexpr int lanes = Traits::sum_lanes, parts = Traits::sum_threads / lanes;
  auto& shared = arch::shared_storage<typename Traits::SumStorage>();
  WgradTileSchedule const& schedule = params.schedule;
  SlidingArguments const& window = params.window;
  Index const group = schedule.first_group + arch::block_z();
  int const lane = arch::thread() % lanes, part = arch::thread() / lanes;
  int const index = arch::block_x() * lanes + lane;
  Sum sum = 0;
  if (index < schedule.weights) {
    Sum const* const partials = static_cast<Sum const*>(params.partials) + group * schedule.weights + index;
    Index const pitch = schedule.groups * schedule.weights;
    constexpr int batch = 4;  // loads in flight
    int block = part;
    for (; block + (batch - 1) * parts < params.blocks; block += batch * parts) {
      Sum value[batch];
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u) value[u] = partials[(block + u * parts) * pitch];
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u) sum += value[u];
    }
    for (; block < params.blocks; block += parts) sum += partials[block * pitch];
  }
  shared.sum[part][lane] = sum;
  arch::block_barrier();
  if (part > 0 || index >= schedule.weights) return;
  COSMATI_UNROLL
  for (int i = 1; i < parts; ++i) sum += shared.sum[i][lane];
  int const above_taps = schedule.taps.quotient(index), tap = index - above_taps * schedule.taps.divisor;
  int const filter = schedule.channels.quotient(above_taps), c = above_taps - filter * window.inputs;
  int const weights = window.outputs * window.inputs * schedule.taps.divisor;
  if (index >= weights) {
    static_cast<Sum*>(params.bias)[(group * window.outputs + index - weights) * params.bias_stride] = sum;
    return;
  }
  int const row = schedule.taps_across.quotient(tap);
  int const number = c * params.channel_number + row * params.tap_row_number +
                     (tap - row * schedule.taps_across.divisor) * params.tap_column_number;
  store_weight<Traits>(params, Traits::swapped, group, filter, number, sum);
}

}  // namespace cosmati
