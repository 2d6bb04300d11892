// cp.async cannot convert bf16 to the f16 that half2 requires.
// expect: multiply half2 requires f16 operands in main loop multistage
// names: HalvesByCopies<
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.stages = 3;
  changed.main_loop = cosmati::MainLoop::multistage;
  changed.multiply = cosmati::Multiply::half2;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, cosmati::bf16, cosmati::f16>>();
