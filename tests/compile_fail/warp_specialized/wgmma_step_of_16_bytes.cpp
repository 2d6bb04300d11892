// A step of TMA must be 128, 64 or 32 bytes deep.
// expect: warp_specialized: a step must be 128, 64 or 32 bytes deep
// names: StepOfASwizzle<8, 2>
#include "tests/compile_fail/warp_specialized/wgmma.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 8;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
