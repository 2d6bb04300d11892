// Four stages that exceed the shared memory of any multiprocessor.
// expect: a block has at most 232448 bytes of shared memory
// names: SharedMemoryOfABlock<278528>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 128;
  changed.stages = 4;
  changed.main_loop = cosmati::MainLoop::multistage;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
