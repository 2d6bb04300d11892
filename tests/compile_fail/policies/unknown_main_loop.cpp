// A number that names no main loop.
// expect: unknown main loop; valid values: double_buffered, multistage, gemv, tiny
// names: Stages<
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.main_loop = static_cast<cosmati::MainLoop>(9);
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
