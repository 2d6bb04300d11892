// A warpgroup has 64 or 128 rows.
// expect: multiply wgmma: warp_m must be 16 or 32, a quarter of the rows of a warpgroup
// names: WarpTileOfWgmma<64,
#include "tests/compile_fail/warp_specialized/wgmma.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.warp_m = 64;
  changed.thread_m = 8;
  changed.block_m = 256;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
