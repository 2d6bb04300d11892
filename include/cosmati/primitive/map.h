// y... = f(x...), element by element over any strides: a thread processes a few contiguous runs and issues
// all their loads before using the first.
#pragma once
#include "cosmati/primitive/math.h"
#include "cosmati/primitive/traits.h"

namespace cosmati {

template <class Traits>
COSMATI_DEVICE void map_block(PrimitiveParameters const& params, unsigned block) {
  using Real = typename Traits::Real;
  constexpr int width = Traits::width;
  PrimitivePolicy const policy = Traits::policy(params);
  auto const first = block * (Traits::threads * Traits::unroll) + static_cast<unsigned>(arch::thread());
  auto const place_of = [&](int u) {
    return Place(params.axis, policy.kept, first + static_cast<unsigned>(u) * Traits::threads);
  };
  auto const exists = [&](int u) {
    return first + static_cast<unsigned>(u) * Traits::threads < params.positions;
  };
  // Without a branch between them, the loads of a single run are in flight while what does not depend on them
  // is computed.
  if (!exists(0)) return;
  auto const count_of = [&](Place const& place) {
    return policy.whole ? width : run_count<width>(params.run_extent, place.at[0]);
  };
  RawInputs<Traits> raw[Traits::unroll];
  COSMATI_UNROLL
  for (int u = 0; u < Traits::unroll; ++u) {
    if (u > 0 && !exists(u)) break;
    Place const place = place_of(u);
    raw[u].fetch(
        params, [&](PrimitiveTensor const& tensor) { return place.offset(tensor.stride); }, count_of(place),
        policy.fixed, u > 0 ? &raw[0] : nullptr);
  }
  COSMATI_UNROLL
  for (int u = 0; u < Traits::unroll; ++u) {
    if (u > 0 && !exists(u)) break;
    Real in[Traits::inputs][width], out[Traits::outputs][width];
    raw[u].unpack(params, in);
    apply_to_run<typename Traits::Function>(params, in, out);
    Place const place = place_of(u);
    store_outputs<Traits>(
        params, [&](PrimitiveTensor const& tensor) { return place.offset(tensor.stride); }, count_of(place),
        out);
  }
}

// Grid: ceil(positions / (threads * unroll)) blocks.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1)
map_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  int const block = arch::block_x(), last = arch::grid_x() - 1;
  map_block<Traits>(params, static_cast<unsigned>(Traits::policy(params).backwards ? last - block : block));
}

// Grid: the blocks of all members.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1)
map_group_kernel(COSMATI_PARAMETER PrimitiveGroup group) {
  auto const block = static_cast<unsigned>(arch::block_x());
  int member = 0;
  for (int m = 1; m < group.members; ++m)
    if (block >= group.first_block[m]) member = m;
  PrimitiveParameters params = group.common;
  COSMATI_UNROLL
  for (int i = 0; i < Traits::inputs && i < group_inputs; ++i) params.tensor[i].data = group.input[member][i];
  COSMATI_UNROLL
  for (int i = 0; i < Traits::outputs && i < group_outputs; ++i)
    params.tensor[primitive_inputs + i].data = group.output[member][i];
  params.run_extent = group.extent[member];
  params.positions = static_cast<unsigned>((params.run_extent + Traits::width - 1) / Traits::width);
  map_block<Traits>(params, block - group.first_block[member]);
}

}  // namespace cosmati
