// A number that names no main loop.
// expect: no such main loop: the policy names double_buffered or multistage
// names: Stages<
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.main_loop = static_cast<cosmati::MainLoop>(9);
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
