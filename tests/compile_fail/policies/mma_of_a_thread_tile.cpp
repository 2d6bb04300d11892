// mma.sync determines how many rows and columns a thread has.
// expect: multiply mma: thread_m is warp_m / 8, thread_n is warp_n / 4
// names: WarpTileOfMma<
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 32;
  changed.stages = 3;
  changed.main_loop = cosmati::MainLoop::multistage;
  changed.multiply = cosmati::Multiply::mma;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, cosmati::f16, float>>();
