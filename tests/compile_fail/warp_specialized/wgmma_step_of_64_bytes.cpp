// A step of TMA must be 128 bytes deep.
// expect: warp_specialized: a step must be 128 bytes deep
// names: StepOf128Bytes<32, 2>
#include "tests/compile_fail/warp_specialized/wgmma.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 32;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
