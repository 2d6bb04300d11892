// The barrier of a stage would wait for the padding between tiles.
// expect: warp_specialized: a step of A and of B must have a multiple of 1024 bytes
// names: TileBytesOfAStep<128, 16, 32>
#include "tests/compile_fail/warp_specialized/wgmma.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_n = changed.warp_n = 16, changed.thread_n = 4, changed.block_k = 16;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
