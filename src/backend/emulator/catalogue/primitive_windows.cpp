// Pooling and local response normalization in the emulator.
#include "cosmati/primitive/lrn.h"
#include "cosmati/primitive/window_tiles.h"
#include "src/backend/emulator/catalogue/primitive_host.h"

namespace cosmati::emulator {
namespace {

using Function = HostFunction<false, 2, 1>;
template <int width>
using Traits = HostTraits<width, false, 0, Function, Function>;

template <int width>
using LrnTiles = HostTraits<width, false, 0, Function, Function, 1, WindowPolicy{.columns = 5}>;

// The windows that plan/primitive/pooling.cpp chooses for the emulator.
constexpr WindowPolicy window_of(int taps, bool runs_of_columns) {
  return {taps, taps, 2, 2, taps == 2 ? 0 : 1, taps == 3, runs_of_columns};
}
template <int taps, bool runs_of_columns>
using Tiles = HostTraits<4, false, 0, Function, Function, 1, window_of(taps, runs_of_columns)>;

void launch_tiles(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters, int host_threads) {
  WindowPolicy const& window = parameters.policy.window;
  if (window.rows == 2 && window.runs_of_columns)
    launch_pass<&window_tile_kernel<Tiles<2, true>>>(pass, parameters, host_threads);
  else if (window.rows == 2)
    launch_pass<&window_tile_kernel<Tiles<2, false>>>(pass, parameters, host_threads);
  else if (window.runs_of_columns)
    launch_pass<&window_tile_kernel<Tiles<3, true>>>(pass, parameters, host_threads);
  else
    launch_pass<&window_tile_kernel<Tiles<3, false>>>(pass, parameters, host_threads);
}

}  // namespace

void launch_windows(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters,
                    int host_threads) {
  bool const wide = parameters.policy.width > 1;
  bool const tiled = parameters.policy.window.columns > 0;
  if (pass.family == plan::PrimitiveFamily::lrn && tiled)
    wide ? launch_pass<&lrn_tile_kernel<LrnTiles<4>>>(pass, parameters, host_threads)
         : launch_pass<&lrn_tile_kernel<LrnTiles<1>>>(pass, parameters, host_threads);
  else if (tiled)
    launch_tiles(pass, parameters, host_threads);
  else if (pass.family == plan::PrimitiveFamily::lrn)
    wide ? launch_pass<&lrn_kernel<Traits<4>>>(pass, parameters, host_threads)
         : launch_pass<&lrn_kernel<Traits<1>>>(pass, parameters, host_threads);
  else
    wide ? launch_pass<&window_kernel<Traits<4>>>(pass, parameters, host_threads)
         : launch_pass<&window_kernel<Traits<1>>>(pass, parameters, host_threads);
}

}  // namespace cosmati::emulator
