// A block tile without columns.
// expect: block_m, block_n and block_k must be positive
// names: BlockTile<64, 0, 8>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_n = 0;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
