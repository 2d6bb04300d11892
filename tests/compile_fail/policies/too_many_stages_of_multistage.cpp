// Six stages for the main loop that supports three to five.
// expect: main loop multistage requires stages = 3, 4 or 5
// names: StagesOfMultistage<6>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.stages = 6;
  changed.main_loop = cosmati::MainLoop::multistage;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
