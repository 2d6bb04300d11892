// A warpgroup's columns come in eights.
// expect: multiply wgmma: warp_n, the columns of a warpgroup, must be a multiple of 16 from 16 to 256
// names: WarpTileOfWgmma<16, 20, 2, 5
#include "tests/compile_fail/warp_specialized/wgmma.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_n = changed.warp_n = 20, changed.thread_n = 5;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
