// A warp tile without rows.
// expect: warp_m must be positive
// names: BlockMOverWarpM<64, 0>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.warp_m = 0;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
