// Pooling over windows of an image, and its gradient: every result gathers its contributions, so that no
// atomic additions are needed.
#pragma once
#include "cosmati/primitive/reduce.h"

namespace cosmati {

enum class WindowOperation : int { max, average, average_with_padding };
COSMATI_CONSTEXPR bool is_gradient(int operation) { return operation >= 3; }
COSMATI_CONSTEXPR WindowOperation window_operation(int operation) {
  return static_cast<WindowOperation>(operation % 3);
}

// The taps of one window along one axis that are inside the image: [first, last), and the position of tap 0.
struct Taps {
  int first, last, place;

  COSMATI_DEVICE Taps(WindowSide const& side, int window) : place(window * side.stride - side.pad) {
    auto const up = [&](int distance) {  // smallest number of dilations that reaches `distance`
      return distance <= 0 ? 0
                           : static_cast<int>(side.by_dilation.quotient(
                                 static_cast<unsigned>(distance + side.dilation - 1)));
    };
    first = up(-place);
    int const end = up(side.image - place);
    last = end < side.taps ? end : side.taps;
    padded = up(side.image + side.pad_end - place);
    padded = padded < side.taps ? padded : side.taps;
  }
  int padded;  // taps before the end of the padded image
  COSMATI_DEVICE int inside() const { return last > first ? last - first : 0; }
};

// The windows [first, last] of one axis that may have a tap at position `place` of the image.
struct WindowsAt {
  int first, last;
  COSMATI_DEVICE WindowsAt(WindowSide const& side, int place) {
    int const from = place + side.pad - (side.taps - 1) * side.dilation;
    first = from <= 0
                ? 0
                : static_cast<int>(side.by_stride.quotient(static_cast<unsigned>(from + side.stride - 1)));
    int const end = static_cast<int>(side.by_stride.quotient(static_cast<unsigned>(place + side.pad)));
    last = end < side.windows ? end : side.windows - 1;
  }
};

// Tensors: forward x -> y, indices; gradient dy, x -> dx with saved indices as the last input. The strides of
// x and dy exclude the two axes of the window, whose strides are in WindowSide.
template <class Traits>
struct WindowKernel {
  using Real = typename Traits::Real;
  static constexpr int width = Traits::width;
  using Source = typename AccessAt<0, typename Traits::Inputs>::type;
  using Indices = typename Traits::Function::Indices;

  PrimitiveParameters const& params;
  PrimitivePolicy const policy;

  COSMATI_DEVICE Real divisor(Taps const& rows, Taps const& columns) const {
    int const count = window_operation(policy.operation) == WindowOperation::average_with_padding
                          ? rows.padded * columns.padded
                          : rows.inside() * columns.inside();
    return static_cast<Real>(count);
  }

  struct Best {
    Real value[width];
    int where[width];
  };

  // Returns the first maximum of each plane's window, and its index as specified by policy.indices.
  template <class Image>
  COSMATI_DEVICE Best maximum(PrimitiveTensor const& x, Index offset, int count, Taps const& rows,
                              Taps const& columns) const {
    WindowSide const &down = params.window[0], &along = params.window[1];
    Best best;
    bool empty = true;
    for (int r = rows.first; r < rows.last; ++r)
      for (int s = columns.first; s < columns.last; ++s) {
        int const h = rows.place + r * down.dilation, w = columns.place + s * along.dilation;
        Real value[width];
        Image::load(params, x, ContiguousRange{offset + h * down.tap_step + w * along.tap_step, count},
                    value);
        int const number = policy.indices == 1 ? h * along.image + w : r * along.taps + s;
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e)
          if (empty || value[e] > best.value[e] || (value[e] != value[e] && best.value[e] == best.value[e])) {
            best.value[e] = value[e];
            best.where[e] = number;
          }
        empty = false;
      }
    return best;
  }

  COSMATI_DEVICE void forward(Place const& place, int count) const {
    WindowSide const &down = params.window[0], &along = params.window[1];
    Taps const rows(down, static_cast<int>(row_of(place))),
        columns(along, static_cast<int>(column_of(place)));
    PrimitiveTensor const& x = params.tensor[0];
    PrimitiveTensor const& y = params.tensor[primitive_inputs];
    Index const offset = place.offset(x.stride);
    Real out[width];
    if (window_operation(policy.operation) == WindowOperation::max) {
      Best const best = maximum<Source>(x, offset, count, rows, columns);
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) out[e] = best.value[e];
      if (policy.indices != 0) {
        PrimitiveTensor const& indices = params.tensor[primitive_inputs + 1];
        Indices::store_integers(indices, ContiguousRange{place.offset(indices.stride), count}, best.where);
      }
    } else {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) out[e] = 0;
      for (int r = rows.first; r < rows.last; ++r)
        for (int s = columns.first; s < columns.last; ++s) {
          Index const h = rows.place + r * down.dilation, w = columns.place + s * along.dilation;
          Real value[width];
          Source::load(params, x, ContiguousRange{offset + h * down.tap_step + w * along.tap_step, count},
                       value);
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e) out[e] += value[e];
        }
      Real const by = divisor(rows, columns);
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) out[e] /= by;
    }
    AccessAt<0, typename Traits::Outputs>::type::store(y, ContiguousRange{place.offset(y.stride), count},
                                                       out);
  }

  COSMATI_DEVICE void backward(Place const& place, int count) const {
    WindowSide const &down = params.window[0], &along = params.window[1];
    int const h = static_cast<int>(row_of(place)), w = static_cast<int>(column_of(place));
    WindowsAt const rows(down, h), columns(along, w);
    PrimitiveTensor const &dy = params.tensor[0], &x = params.tensor[1],
                          &saved = params.tensor[primitive_inputs - 1];
    PrimitiveTensor const& dx = params.tensor[primitive_inputs];
    bool const max = window_operation(policy.operation) == WindowOperation::max;
    Index const from = place.offset(dy.stride), of_x = place.offset(x.stride),
                of_saved = place.offset(saved.stride);
    Real sum[width] = {};
    for (int p = rows.first; p <= rows.last; ++p) {
      int const tap_row = tap_at(down, h, p);
      if (tap_row < 0) continue;
      Taps const row_taps(down, p);
      for (int q = columns.first; q <= columns.last; ++q) {
        int const tap_column = tap_at(along, w, q);
        if (tap_column < 0) continue;
        Taps const column_taps(along, q);
        Index const window = p * down.pair_step + q * along.pair_step;
        Real value[width];
        Source::load(params, dy, ContiguousRange{from + window, count}, value);
        if (!max) {
          Real const by = divisor(row_taps, column_taps);
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e) sum[e] += value[e] / by;
          continue;
        }
        int const mine = policy.indices == 1 ? h * along.image + w : tap_row * along.taps + tap_column;
        if (policy.indices != 0) {
          Index const at = of_saved + p * down.index_step + q * along.index_step;
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e)
            if (e < count && Indices::integer(saved, at + e * saved.run_stride) == mine) sum[e] += value[e];
        } else if constexpr (Traits::inputs > 1) {
          using Image = typename AccessAt<1, typename Traits::Inputs>::type;
          Best const best = maximum<Image>(x, of_x, count, row_taps, column_taps);
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e)
            if (best.where[e] == mine) sum[e] += value[e];
        }
      }
    }
    AccessAt<0, typename Traits::Outputs>::type::store(dx, ContiguousRange{place.offset(dx.stride), count},
                                                       sum);
  }

  COSMATI_DEVICE void run(unsigned position) const {
    Place const place(params.axis, policy.kept, position);
    int const count = run_count<width>(params.run_extent, place.at[0]);
    if (is_gradient(policy.operation))
      backward(place, count);
    else
      forward(place, count);
  }

 private:
  COSMATI_DEVICE unsigned column_of(Place const& place) const { return place.at[policy.columns_axis]; }
  COSMATI_DEVICE unsigned row_of(Place const& place) const { return place.at[policy.columns_axis + 1]; }

  // Returns the tap of window `window` at position `place`, or -1 if there is none.
  COSMATI_DEVICE static int tap_at(WindowSide const& side, int place, int window) {
    int const distance = place + side.pad - window * side.stride;
    if (distance < 0) return -1;
    auto const tap = static_cast<int>(side.by_dilation.quotient(static_cast<unsigned>(distance)));
    return tap * side.dilation == distance && tap < side.taps ? tap : -1;
  }
};

// Grid: ceil(positions / threads) blocks.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1)
window_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  unsigned const position =
      static_cast<unsigned>(arch::block_x()) * Traits::threads + static_cast<unsigned>(arch::thread());
  if (position >= params.positions) return;
  WindowKernel<Traits>{params, Traits::policy(params)}.run(position);
}

}  // namespace cosmati
