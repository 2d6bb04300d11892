// The columns of a block are not a multiple of a warp's columns.
// expect: block_n must be a multiple of warp_n
// names: BlockNOverWarpN<80, 32>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_n = 80;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
