// Pooling over windows of compile-time extents, and its gradient for non-overlapping windows: all taps are
// loaded before the first is used, and no window is visited twice.
#pragma once
#include "cosmati/primitive/windows.h"

namespace cosmati {

// A thread computes `width` windows: of adjacent channels (runs along channels), or adjacent windows in one
// row of y, whose taps are loaded as runs of columns of x. Tensors as in WindowKernel. For the gradient the
// axes of dx count windows; each covers down x along positions of the image, and the last ones the remainder.
template <class Traits>
struct WindowTile {
  using Real = typename Traits::Real;
  using Indices = typename Traits::Function::Indices;
  static constexpr int width = Traits::width, rows = Traits::window.rows, columns = Traits::window.columns;
  static constexpr int along = Traits::window.along, down = Traits::window.down;
  static constexpr bool of_columns = Traits::window.runs_of_columns, padded = Traits::window.padded;
  // Columns per load of the taps of `width` windows, and columns loaded before the first tap.
  static constexpr int piece = of_columns ? Traits::unroll : 1;
  static constexpr int lead =
      of_columns ? (Traits::window.pad + piece - 1) / piece * piece - Traits::window.pad : 0;
  static constexpr int span =
      of_columns ? (lead + (width - 1) * along + columns + piece - 1) / piece * piece : columns * width;

  PrimitiveParameters const& params;
  PrimitivePolicy const policy;
  int const row, column;  // of the first window in y

  COSMATI_DEVICE WindowTile(PrimitiveParameters const& all, Place const& place)
      : params(all),
        policy(Traits::policy(all)),
        row(static_cast<int>(place.at[policy.columns_axis + 1])),
        column(static_cast<int>(place.at[policy.columns_axis]) * (of_columns ? width : 1)) {}

  COSMATI_DEVICE int first_row() const { return row * down - params.window[0].pad; }
  COSMATI_DEVICE int first_column() const { return column * along - params.window[1].pad; }
  COSMATI_DEVICE static constexpr int slot(int s, int e) {
    return of_columns ? lead + e * along + s : s * width + e;
  }
  COSMATI_DEVICE bool has_row(int r) const {
    int const h = first_row() + r;
    return !padded || (h >= 0 && h < params.window[0].image);
  }
  COSMATI_DEVICE bool has_column(int s, int e) const {
    int const w = first_column() + (of_columns ? e * along : 0) + s;
    return !padded || (w >= 0 && w < params.window[1].image);
  }

  template <class Image>
  COSMATI_DEVICE void load(PrimitiveTensor const& x, Index offset, Real (&taps)[rows][span]) const {
    WindowSide const &side0 = params.window[0], &side1 = params.window[1];
    constexpr int run = of_columns ? piece : width, runs = span / run;
    typename Image::template Raw<run> raw[rows][runs];
    COSMATI_UNROLL
    for (int r = 0; r < rows; ++r) {
      Index const line = offset + (first_row() + r) * side0.tap_step;
      COSMATI_UNROLL
      for (int i = 0; i < runs; ++i) {
        int const w = first_column() + (of_columns ? i * run - lead : i);
        // A run of columns is entirely inside or outside the image, since the image's width is a multiple of
        // a run.
        if (has_row(r) && ((!padded && !of_columns) || (w >= 0 && w < side1.image)))
          Image::template fetch<run>(params, x, ContiguousRange{line + w * side1.tap_step, run}, raw[r][i]);
        else
          raw[r][i].clear();
      }
    }
    COSMATI_UNROLL
    for (int r = 0; r < rows; ++r) {
      COSMATI_UNROLL
      for (int i = 0; i < runs; ++i) {
        Real some[run];
        Image::unpack(params, raw[r][i], some);
        COSMATI_UNROLL
        for (int e = 0; e < run; ++e) taps[r][i * run + e] = some[e];
      }
    }
  }

  // The first maximum of each window and its index as specified by policy.indices, or the tap r * columns +
  // s.
  struct Best {
    Real value[width];
    int where[width];
  };
  COSMATI_DEVICE Best maximum(Real const (&taps)[rows][span], bool of_image) const {
    Best best;
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) {
      best.value[e] = lowest<Real>();
      best.where[e] = -1;
      COSMATI_UNROLL
      for (int r = 0; r < rows; ++r) {
        COSMATI_UNROLL
        for (int s = 0; s < columns; ++s) {
          Real const value = taps[r][slot(s, e)], held = best.value[e];
          bool const first = padded ? best.where[e] < 0 : r == 0 && s == 0;
          if (has_row(r) && has_column(s, e) && (first || value > held || (value != value && held == held))) {
            best.value[e] = value;
            best.where[e] = of_image ? (first_row() + r) * params.window[1].image + first_column() +
                                           (of_columns ? e * along : 0) + s
                                     : r * columns + s;
          }
        }
      }
    }
    return best;
  }

  COSMATI_DEVICE Real divisor(int e) const {
    WindowSide const &side0 = params.window[0], &side1 = params.window[1];
    if (!padded) return static_cast<Real>(rows * columns);
    bool const all = window_operation(policy.operation) == WindowOperation::average_with_padding;
    int const h = first_row(), w = first_column() + (of_columns ? e * along : 0);
    int const end0 = side0.image + (all ? side0.pad_end : 0), end1 = side1.image + (all ? side1.pad_end : 0);
    auto const inside = [&](int from, int taps, int end) {
      int const first = all || from > 0 ? from : 0, last = from + taps < end ? from + taps : end;
      return last - first;
    };
    return static_cast<Real>(inside(h, rows, end0) * inside(w, columns, end1));
  }

  COSMATI_DEVICE void forward(Place const& place, int count) const {
    Real taps[rows][span], out[width];
    load<typename AccessAt<0, typename Traits::Inputs>::type>(params.tensor[0],
                                                              place.offset(params.tensor[0].stride), taps);
    if (window_operation(policy.operation) == WindowOperation::max) {
      Best const best = maximum(taps, policy.indices == 1);
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) out[e] = best.value[e];
      if (policy.indices != 0) {
        PrimitiveTensor const& indices = params.tensor[primitive_inputs + 1];
        Indices::store_integers(indices, ContiguousRange{place.offset(indices.stride), count}, best.where);
      }
    } else {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        Real sum = 0;
        COSMATI_UNROLL
        for (int r = 0; r < rows; ++r) {
          COSMATI_UNROLL
          for (int s = 0; s < columns; ++s)
            if (has_row(r) && has_column(s, e)) sum += taps[r][slot(s, e)];
        }
        out[e] = sum / divisor(e);
      }
    }
    PrimitiveTensor const& y = params.tensor[primitive_inputs];
    AccessAt<0, typename Traits::Outputs>::type::store(y, ContiguousRange{place.offset(y.stride), count},
                                                       out);
  }

  // Stores the contribution of a window's gradient to each of its taps; zero if there is no window.
  COSMATI_DEVICE void backward(Place const& place, int count) const {
    WindowSide const &side0 = params.window[0], &side1 = params.window[1];
    bool const is_window = row < side0.windows && column < side1.windows;
    bool const max = window_operation(policy.operation) == WindowOperation::max;
    PrimitiveTensor const &dy = params.tensor[0], &saved = params.tensor[primitive_inputs - 1];
    Real gradient[width] = {};
    int where[width];
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) where[e] = -1;
    if (is_window) {
      using Source = typename AccessAt<0, typename Traits::Inputs>::type;
      Source::load(
          params, dy,
          ContiguousRange{place.offset(dy.stride) + row * side0.pair_step + column * side1.pair_step, count},
          gradient);
      if (!max) {
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) gradient[e] /= divisor(e);
      } else if (policy.indices != 0) {
        Index const at = place.offset(saved.stride) + row * side0.index_step + column * side1.index_step;
        Indices::load_integers(saved, ContiguousRange{at, count}, where);
        if (policy.indices == 1) {  // positions in the image
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e)
            where[e] -= first_row() * side1.image + first_column() + (of_columns ? e * along : 0);
        }
      } else if constexpr (Traits::inputs > 1) {
        PrimitiveTensor const& x = params.tensor[1];
        Real taps[rows][span];
        load<typename AccessAt<1, typename Traits::Inputs>::type>(x, place.offset(x.stride), taps);
        Best const best = maximum(taps, false);
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) where[e] = best.where[e];
      }
    }
    int const line = max && policy.indices == 1 ? side1.image : columns;  // indices per row
    auto const share = [&](int i, int j, int e) {
      bool const takes = i < rows && j < columns && (!max || where[e] == i * line + j);
      return takes ? gradient[e] : Real(0);
    };
    PrimitiveTensor const& dx = params.tensor[primitive_inputs];
    using Result = typename AccessAt<0, typename Traits::Outputs>::type;
    Index const to = place.offset(dx.stride);
    COSMATI_UNROLL
    for (int i = 0; i < down; ++i) {
      int const h = first_row() + i;
      if (h < 0 || h >= side0.image) continue;
      if constexpr (of_columns) {
        Real out[width * along];
        COSMATI_UNROLL
        for (int j = 0; j < width * along; ++j) out[j] = share(i, j % along, j / along);
        Result::store(
            dx, ContiguousRange{to + h * side0.tap_step + first_column() * side1.tap_step, width * along},
            out);
      } else {
        COSMATI_UNROLL
        for (int j = 0; j < along; ++j) {
          int const w = first_column() + j;
          if (w < 0 || w >= side1.image) continue;
          Real out[width];
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e) out[e] = share(i, j, e);
          Result::store(dx, ContiguousRange{to + h * side0.tap_step + w * side1.tap_step, count}, out);
        }
      }
    }
  }
};

// Grid: ceil(positions / threads) blocks.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1)
window_tile_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  unsigned const position =
      static_cast<unsigned>(arch::block_x()) * Traits::threads + static_cast<unsigned>(arch::thread());
  if (position >= params.positions) return;
  PrimitivePolicy const policy = Traits::policy(params);
  Place const place(params.axis, policy.kept, position);
  int const count = policy.whole ? Traits::width : run_count<Traits::width>(params.run_extent, place.at[0]);
  WindowTile<Traits> const tile(params, place);
  if (is_gradient(policy.operation))
    tile.backward(place, count);
  else
    tile.forward(place, count);
}

}  // namespace cosmati
