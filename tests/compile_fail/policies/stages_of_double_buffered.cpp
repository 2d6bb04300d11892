// Three stages for the main loop that supports only two.
// expect: main loop double_buffered requires stages = 2
// names: StagesOfDoubleBuffered<3>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.stages = 3;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
