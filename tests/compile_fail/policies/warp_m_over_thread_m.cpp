// The rows of a warp are not a multiple of a thread's rows.
// expect: warp_m must be a multiple of thread_m
// names: WarpMOverThreadM<32, 12>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.thread_m = 12;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
