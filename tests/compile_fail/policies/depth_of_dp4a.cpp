// A step whose depth is not a multiple of four.
// expect: block_k must be a multiple of the multiply's pack_depth
// names: StepDepth<10, 4>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 10;
  changed.multiply = cosmati::Multiply::dp4a;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, cosmati::s8, cosmati::s32>>();
