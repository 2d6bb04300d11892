// The columns of a warp are not a multiple of a thread's columns.
// expect: warp_n must be a multiple of thread_n
// names: WarpNOverThreadN<32, 5>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.thread_n = 5;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
