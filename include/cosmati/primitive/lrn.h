// Local response normalisation across channels, and its gradient.
#pragma once
#include "cosmati/primitive/math.h"
#include "cosmati/primitive/traits.h"

namespace cosmati {

// Inputs: x, of the gradient dy too. scalar: k, alpha / size, beta. `classes`: channels; window[0].taps: the
// size, .tap_step and .pair_step: elements from a channel to the next of x and dy. The axis of the channels
// is policy.columns_axis, and no run lies along it.
template <class Traits>
struct LrnKernel {
  using Real = typename Traits::Real;
  static constexpr int width = Traits::width;
  using X = typename AccessAt<0, typename Traits::Inputs>::type;

  PrimitiveParameters const& params;

  // k + alpha / size * sum of x[i]^2 over the window of channel c. `offset`: of channel 0.
  COSMATI_DEVICE void base(Index offset, int count, int c, Real (&to)[width]) const {
    WindowSide const& side = params.window[0];
    int const first = c - (side.taps - 1) / 2, last = c + side.taps / 2;
    Real sum[width] = {};
    for (int i = first < 0 ? 0 : first; i <= last && i < params.classes; ++i) {
      Real x[width];
      X::load(params, params.tensor[0], Run{offset + i * side.tap_step, count}, x);
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
    X::load(params, in, Run{own, count}, x);
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
          X::load(params, in, Run{offset + i * side.tap_step, count}, other);
          Gradient::load(params, gradient, Run{gradients + i * side.pair_step, count}, dy);
          base(offset, count, i, other_base);
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e) sum[e] += dy[e] * other[e] * power(other_base[e], -beta - Real(1));
        }
        Gradient::load(params, gradient, Run{own_gradient, count}, dy);
        auto const factor = static_cast<Real>(2 * params.scalar[1] * params.scalar[2]);
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) out[e] = dy[e] * scale[e] - factor * x[e] * sum[e];
      }
    }
    AccessAt<0, typename Traits::Outputs>::type::store(result, Run{place.offset(result.stride), count}, out);
  }
};

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
