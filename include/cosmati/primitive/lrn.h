// Local response normalization across channels, and its gradient.
#pragma once
#include "cosmati/primitive/math.h"
#include "cosmati/primitive/traits.h"

namespace cosmati {

// Inputs: x, and dy for the gradient. scalar: k, alpha / size, beta. `classes`: channels; window[0].taps: the
// size; .tap_step and .pair_step: elements between channels of x and dy. The axis of the channels is
// policy.columns_axis; runs are along another axis.
template <class Traits>
struct LrnKernel {
  using Real = typename Traits::Real;
  static constexpr int width = Traits::width;
  using X = typename AccessAt<0, typename Traits::Inputs>::type;

  PrimitiveParameters const& params;

  // Computes k + alpha / size * sum of x[i]^2 over the window of channel c. `offset`: of channel 0.
  COSMATI_DEVICE void base(Index offset, int count, int c, Real (&to)[width]) const {
    WindowSide const& side = params.window[0];
    int const first = c - (side.taps - 1) / 2, last = c + side.taps / 2;
    Real sum[width] = {};
    for (int i = first < 0 ? 0 : first; i <= last && i < params.classes; ++i) {
      Real x[width];
      X::load(params, params.tensor[0], ContiguousRange{offset + i * side.tap_step, count}, x);
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) sum[e] += x[e] * x[e];
    }
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e)
      to[e] = static_cast<Real>(params.scalar[0]) + static_cast<Real>(params.scalar[1]) * sum[e];
  }

  COSMATI_DEVICE void run(unsigned position) const {
    PrimitivePolicy const policy = Traits::policy(params);
    WindowSide const& side = params.window[0];
    Place const place(params.axis, policy.kept, position);
    int const count = run_count<width>(params.run_extent, place.at[0]);
    auto const c = static_cast<int>(place.at[policy.columns_axis]);
    PrimitiveTensor const &in = params.tensor[0], &gradient = params.tensor[1],
                          &result = params.tensor[primitive_inputs];
    Index const own = place.offset(in.stride), offset = own - c * side.tap_step;
    auto const beta = static_cast<Real>(params.scalar[2]);
    Real x[width], scale[width], out[width];
    X::load(params, in, ContiguousRange{own, count}, x);
    base(offset, count, c, scale);
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) {
      scale[e] = power(scale[e], -beta);
      out[e] = x[e] * scale[e];
    }
    if constexpr (Traits::inputs > 1) {
      if (policy.operation == 1) {
        using Gradient = typename AccessAt<1, typename Traits::Inputs>::type;
        Index const own_gradient = place.offset(gradient.stride),
                    gradients = own_gradient - c * side.pair_step;
        Real sum[width] = {}, dy[width];
        int const first = c - side.taps / 2, last = c + (side.taps - 1) / 2;
        for (int i = first < 0 ? 0 : first; i <= last && i < params.classes; ++i) {
          Real other[width], other_base[width];
          X::load(params, in, ContiguousRange{offset + i * side.tap_step, count}, other);
          Gradient::load(params, gradient, ContiguousRange{gradients + i * side.pair_step, count}, dy);
          base(offset, count, i, other_base);
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e) sum[e] += dy[e] * other[e] * power(other_base[e], -beta - Real(1));
        }
        Gradient::load(params, gradient, ContiguousRange{own_gradient, count}, dy);
        auto const factor = static_cast<Real>(2 * params.scalar[1] * params.scalar[2]);
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) out[e] = dy[e] * scale[e] - factor * x[e] * sum[e];
      }
    }
    AccessAt<0, typename Traits::Outputs>::type::store(
        result, ContiguousRange{place.offset(result.stride), count}, out);
  }
};

// A thread computes `groups` groups of `unroll` channels with a compile-time window size, one after the
// other: all elements of a group are loaded before its first sum, those of the next group before that. The
// axis of the channels counts threads; window[0].index_step: elements between channels of the result.
template <class Traits>
struct LrnTile {
  using Real = typename Traits::Real;
  static constexpr int width = Traits::width, channels = Traits::unroll, size = Traits::window.columns;
  // Channels of a window before and after its center.
  static constexpr int before = (size - 1) / 2, after = size / 2;
  // Resident blocks that small windows leave registers for.
  static constexpr int blocks = Traits::groups == 1 || size > 5 ? 1 : width == 1 ? 4 : 3;

  PrimitiveParameters const& params;
  PrimitivePolicy const policy;
  int const first, count;  // channel; elements of a run

  // Elements between channels of x and of the result; known at compile time if they are equal.
  COSMATI_DEVICE Index step() const { return policy.step > 0 ? policy.step : params.window[0].tap_step; }
  COSMATI_DEVICE Index step_of_result() const {
    return policy.step > 0 ? policy.step : params.window[0].index_step;
  }

  // Fetches channels [c, c + many), of which the first one is at `offset`.
  template <class Tensor, int many>
  COSMATI_DEVICE void fetch(PrimitiveTensor const& tensor, Index offset, Index step, int c,
                            typename Tensor::template Raw<width> (&raw)[many]) const {
    if (c >= 0 && c + many <= params.classes) {
      COSMATI_UNROLL
      for (int i = 0; i < many; ++i)
        Tensor::template fetch<width>(params, tensor, ContiguousRange{offset + i * step, count}, raw[i]);
      return;
    }
    COSMATI_UNROLL
    for (int i = 0; i < many; ++i) {
      raw[i].clear();
      if (c + i >= 0 && c + i < params.classes)
        Tensor::template fetch<width>(params, tensor, ContiguousRange{offset + i * step, count}, raw[i]);
    }
  }

  // Loads channels [first + from, first + from + many); channel `first` is at `offset`.
  template <class Tensor, int many>
  COSMATI_DEVICE void load(PrimitiveTensor const& tensor, Index offset, Index step, int from,
                           Real (&to)[many][width]) const {
    typename Tensor::template Raw<width> raw[many];
    fetch<Tensor>(tensor, offset + from * step, step, first + from, raw);
    COSMATI_UNROLL
    for (int i = 0; i < many; ++i) Tensor::unpack(params, raw[i], to[i]);
  }

  // Returns k + alpha / size * sum of x[i]^2 over the `size` channels starting at i.
  template <int many>
  COSMATI_DEVICE Real base(Real const (&x)[many][width], int i, int e) const {
    Real sum = 0;
    COSMATI_UNROLL
    for (int j = 0; j < size; ++j) sum += x[i + j][e] * x[i + j][e];
    return static_cast<Real>(params.scalar[0]) + static_cast<Real>(params.scalar[1]) * sum;
  }

  COSMATI_DEVICE void forward(Place const& place) const {
    using X = typename AccessAt<0, typename Traits::Inputs>::type;
    constexpr int kept = size - 1, all = channels + kept;
    PrimitiveTensor const& in = params.tensor[0];
    auto const beta = static_cast<Real>(params.scalar[2]);
    Index offset = place.offset(in.stride), to = place.offset(params.tensor[primitive_inputs].stride);
    Real x[all][width];
    load<X>(in, offset, step(), -before, x);
    for (int c = first, left = policy.groups; left > 0; --left, c += channels) {
      typename X::template Raw<width> next[channels];
      offset += channels * step();
      if (left > 1) fetch<X>(in, offset + after * step(), step(), c + channels + after, next);
      Real out[channels][width];
      COSMATI_UNROLL
      for (int i = 0; i < channels; ++i) {
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) out[i][e] = x[i + before][e] * power(base(x, i, e), -beta);
      }
      store(to, c, out);
      to += channels * step_of_result();
      if (left == 1) break;
      COSMATI_UNROLL
      for (int i = 0; i < all; ++i) {
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e)
          if (i < kept) x[i][e] = x[i + channels][e];
        if (i >= kept) X::unpack(params, next[i - kept], x[i]);
      }
    }
  }

  // dx[c] = dy[c] b[c]^-beta - 2 alpha / size beta x[c] sum of dy[i] x[i] b[i]^(-beta - 1) over the channels
  // i whose windows contain c.
  COSMATI_DEVICE void backward(Place const& place) const {
    if constexpr (Traits::inputs > 1) {
      using X = typename AccessAt<0, typename Traits::Inputs>::type;
      using Gradient = typename AccessAt<1, typename Traits::Inputs>::type;
      PrimitiveTensor const &in = params.tensor[0], &gradient = params.tensor[1];
      auto const beta = static_cast<Real>(params.scalar[2]);
      auto const factor = static_cast<Real>(2 * params.scalar[1] * params.scalar[2]);
      constexpr int some = channels + size - 1;  // channels whose windows contain one of these
      Real x[some + size - 1][width], dy[some][width], scale[channels][width];
      load<X>(in, place.offset(in.stride), params.window[0].tap_step, -before - after, x);
      load<Gradient>(gradient, place.offset(gradient.stride), params.window[0].pair_step, -after, dy);
      COSMATI_UNROLL
      for (int i = 0; i < some; ++i) {
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) {
          Real const of_window = base(x, i, e), raised = power(of_window, -beta);
          if (i >= after && i < after + channels) scale[i - after][e] = dy[i][e] * raised;
          dy[i][e] *= x[i + before][e] * raised / of_window;
        }
      }
      COSMATI_UNROLL
      for (int i = 0; i < channels; ++i) {
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) {
          Real sum = 0;
          COSMATI_UNROLL
          for (int j = 0; j < size; ++j) sum += dy[i + j][e];
          scale[i][e] -= factor * x[i + before + after][e] * sum;
        }
      }
      store(place.offset(params.tensor[primitive_inputs].stride), first, scale);
    }
  }

  // Stores channels [c, c + channels), of which the first one is at `offset`.
  COSMATI_DEVICE void store(Index offset, int c, Real const (&out)[channels][width]) const {
    if (c + channels <= params.classes)
      store_first(offset, channels, out);
    else
      store_first(offset, params.classes - c, out);
  }
  COSMATI_DEVICE void store_first(Index offset, int many, Real const (&out)[channels][width]) const {
    using Y = typename AccessAt<0, typename Traits::Outputs>::type;
    COSMATI_UNROLL
    for (int i = 0; i < channels; ++i)
      if (i < many)
        Y::store(params.tensor[primitive_inputs], ContiguousRange{offset + i * step_of_result(), count},
                 out[i]);
  }
};

// Grid: ceil(positions / threads) blocks.
template <class Traits>
COSMATI_KERNEL(Traits::threads, LrnTile<Traits>::blocks)
lrn_tile_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  unsigned const position =
      static_cast<unsigned>(arch::block_x()) * Traits::threads + static_cast<unsigned>(arch::thread());
  if (position >= params.positions) return;
  PrimitivePolicy const policy = Traits::policy(params);
  Place const place(params.axis, policy.kept, position);
  LrnTile<Traits> const tile{
      params, policy,
      static_cast<int>(place.at[policy.columns_axis]) * LrnTile<Traits>::channels * policy.groups,
      policy.whole ? Traits::width : run_count<Traits::width>(params.run_extent, place.at[0])};
  if (policy.operation == 1)
    tile.backward(place);
  else
    tile.forward(place);
}

// Grid: ceil(positions / threads) blocks.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1)
lrn_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  unsigned const position =
      static_cast<unsigned>(arch::block_x()) * Traits::threads + static_cast<unsigned>(arch::thread());
  if (position >= params.positions) return;
  LrnKernel<Traits>{params}.run(position);
}

}  // namespace cosmati
