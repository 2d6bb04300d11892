// Half a warp would be idle.
// expect: a warp has 32 lanes: (warp_m / thread_m) * (warp_n / thread_n) must be 32
// names: LanesOfAWarp<4, 4>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.thread_n = 8;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
