// wgmma supports only K-major 8-bit operands.
// expect: multiply wgmma requires K-major operands unless elements have 16 bits
// names: OperandsOfWgmma<
#include "tests/compile_fail/warp_specialized/wgmma.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 128;
  return changed;
}();
auto const parameters =
    mistake::parameters<mistake::Gemm<policy, cosmati::s8, cosmati::Along::mn, cosmati::s32>>();
