// Tensor cores support TF32, if it is requested by name, but not f32.
// expect: multiply mma requires two operands of f16, bf16 or tf32, or of fp8, or of s8 and u8
// names: OperandsOfMma<
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 16;
  changed.thread_m = 4;
  changed.thread_n = 8;
  changed.stages = 3;
  changed.main_loop = cosmati::MainLoop::multistage;
  changed.multiply = cosmati::Multiply::mma;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, float, float>>();
