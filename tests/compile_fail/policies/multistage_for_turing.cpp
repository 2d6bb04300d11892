// One of the architectures that the program is compiled for has no cp.async.
// expect: main loop multistage requires cp.async, available on sm_80 and later; use double_buffered for sm_75
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
