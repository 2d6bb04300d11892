// The rows of a block are not a multiple of a warp's rows.
// expect: block_m must be a multiple of warp_m
// names: BlockMOverWarpM<128, 48>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_m = 128;
  changed.warp_m = 48;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
