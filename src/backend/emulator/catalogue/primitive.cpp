// Element-wise kernels, transpositions and gathers in the emulator.
#include "cosmati/primitive/gather.h"
#include "cosmati/primitive/map.h"
#include "cosmati/primitive/transpose.h"
#include "cosmati/primitive/transpose_planes.h"
#include "src/backend/emulator/catalogue/primitive_host.h"

namespace cosmati::emulator {
namespace {

using Function = HostFunction<false, primitive_inputs, primitive_outputs>;
template <int width>
using Traits = HostTraits<width, false, 0, Function, Function>;
using One = HostFunction<false, 1, 1>;
using Copy = HostTraits<1, false, 0, One, One>;
using WideCopy = HostTraits<4, false, 0, One, One>;
// Blocks have 16 channels, as in plan/primitive/transpose.cpp.
template <int width, bool to_planes>
using PlaneCopy =
    HostTraits<width, false, 0, One, One, 1, WindowPolicy{.columns = 16, .runs_of_columns = to_planes}>;

template <int width, bool to_planes>
void add_plane_transpose(KernelTable& table) {
  using Traits = PlaneCopy<width, to_planes>;
  add_pass<&transpose_plane_tile_kernel<Traits>, Traits>(table, "transpose_plane_tile_kernel");
}

}  // namespace

void add_primitives(KernelTable& table) {
  add_pass<&map_kernel<Traits<1>>, Traits<1>>(table, "map_kernel");
  add_pass<&map_kernel<Traits<4>>, Traits<4>>(table, "map_kernel");
  add_pass<&map_group_kernel<Traits<1>>, Traits<1>, PrimitiveGroup>(table, "map_group_kernel");
  add_pass<&map_group_kernel<Traits<4>>, Traits<4>, PrimitiveGroup>(table, "map_group_kernel");
  add_pass<&transpose_kernel<Copy>, Copy>(table, "transpose_kernel");
  add_pass<&transpose_kernel<WideCopy>, WideCopy>(table, "transpose_kernel");
  add_plane_transpose<4, false>(table);
  add_plane_transpose<4, true>(table);
  add_plane_transpose<8, false>(table);
  add_plane_transpose<8, true>(table);
  add_pass<&gather_kernel<Copy>, Copy>(table, "gather_kernel");
  add_pass<&gather_kernel<WideCopy>, WideCopy>(table, "gather_kernel");
}

}  // namespace cosmati::emulator
