// WMMA sums bf16 products only in f32.
// expect: multiply wmma accumulates f16 in f32 or f16, bf16 and tf32 in f32
// names: OperandsOfWmma<
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 32;
  changed.thread_m = 4;
  changed.thread_n = 8;
  changed.multiply = cosmati::Multiply::wmma;
  changed.epilogue = cosmati::EpilogueSchedule::staged;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, cosmati::bf16, cosmati::f16>>();
