// y[n, f...] = f(x[order[n], f...]): gathers rows of a table in any order.
#pragma once
#include "cosmati/primitive/traits.h"

namespace cosmati {

// Axes: runs of a row, rows. The last input of the parameters is the order.
// Grid: ceil(positions / threads) blocks.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1)
gather_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  using Real = typename Traits::Real;
  using Indices = typename Traits::Function::Indices;
  constexpr int width = Traits::width;
  auto const position =
      static_cast<unsigned>(arch::block_x()) * Traits::threads + static_cast<unsigned>(arch::thread());
  if (position >= params.positions) return;
  Place const place(params.axis, 2, position);
  PrimitiveTensor const& order = params.tensor[primitive_inputs - 1];
  Index const row = Indices::integer(order, place.at[1] * order.stride[1]);
  int const count = run_count<width>(params.run_extent, place.at[0]);
  Real in[Traits::inputs][width], out[Traits::outputs][width];
  load_inputs<Traits>(
      params,
      [&](PrimitiveTensor const& tensor) { return place.at[0] * tensor.stride[0] + row * tensor.stride[1]; },
      count, in);
  apply_to_run<typename Traits::Function>(params, in, out);
  store_outputs<Traits>(
      params, [&](PrimitiveTensor const& tensor) { return place.offset(tensor.stride); }, count, out);
}

}  // namespace cosmati
