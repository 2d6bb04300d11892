// An odd depth of a step.
// expect: block_k / pack_depth must be even
// names: StepDepth<9, 1>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 9;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
