// Pooling and local response normalization in the emulator.
#include "cosmati/primitive/lrn.h"
#include "cosmati/primitive/lrn_planes.h"
#include "cosmati/primitive/window_tiles.h"
#include "src/backend/emulator/catalogue/primitive_host.h"

namespace cosmati::emulator {
namespace {

using WindowFunction = HostFunction<false, 2, 1>;
template <int width>
using WindowTraits = HostTraits<width, false, 0, WindowFunction, WindowFunction>;

template <int width>
using LrnTiles = HostTraits<width, false, 0, WindowFunction, WindowFunction, 1, WindowPolicy{.columns = 5}>;

// The windows that plan/primitive/pooling.cpp chooses for the emulator.
constexpr WindowPolicy window_of(int taps, bool runs_of_columns) {
  return {taps, taps, 2, 2, taps == 2 ? 0 : 1, taps == 3, runs_of_columns};
}
template <int taps, bool runs_of_columns>
using Tiles = HostTraits<4, false, 0, WindowFunction, WindowFunction, 1, window_of(taps, runs_of_columns)>;

template <class Traits>
void add_tile(KernelTable& table) {
  add_pass<&window_tile_kernel<Traits>, Traits>(table, "window_tile_kernel");
}

}  // namespace

void add_primitives_of_windows(KernelTable& table) {
  add_pass<&lrn_kernel<WindowTraits<1>>, WindowTraits<1>>(table, "lrn_kernel");
  add_pass<&lrn_kernel<WindowTraits<4>>, WindowTraits<4>>(table, "lrn_kernel");
  add_pass<&lrn_tile_kernel<LrnTiles<1>>, LrnTiles<1>>(table, "lrn_tile_kernel");
  add_pass<&lrn_tile_kernel<LrnTiles<4>>, LrnTiles<4>>(table, "lrn_tile_kernel");
  add_pass<&lrn_plane_tile_kernel<LrnTiles<4>>, LrnTiles<4>>(table, "lrn_plane_tile_kernel");
  add_pass<&lrn_plane_tile_kernel<LrnTiles<8>>, LrnTiles<8>>(table, "lrn_plane_tile_kernel");
  add_pass<&window_kernel<WindowTraits<1>>, WindowTraits<1>>(table, "window_kernel");
  add_pass<&window_kernel<WindowTraits<4>>, WindowTraits<4>>(table, "window_kernel");
  add_tile<Tiles<2, true>>(table);
  add_tile<Tiles<2, false>>(table);
  add_tile<Tiles<3, true>>(table);
  add_tile<Tiles<3, false>>(table);
}

}  // namespace cosmati::emulator
