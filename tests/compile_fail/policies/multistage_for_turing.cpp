// One of the architectures that the program is compiled for has no cp.async.
// expect: the multistage main loop copies by cp.async, which sm_80 is the first to have; for sm_75 take
// double_buffered names: ArchitectureOfMultistage<3, 750>
#undef __CUDA_ARCH_LIST__
#define __CUDA_ARCH_LIST__ 750, 800
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.stages = 3;
  changed.main_loop = cosmati::MainLoop::multistage;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
