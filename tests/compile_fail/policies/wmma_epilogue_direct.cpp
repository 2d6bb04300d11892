// WMMA does not specify which thread holds which element of a fragment.
// expect: multiply wmma requires epilogue staged: the thread that holds an element of D is unspecified
// names: EpilogueOfWmma<true>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 32;
  changed.thread_m = 4;
  changed.thread_n = 8;
  changed.multiply = cosmati::Multiply::wmma;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, cosmati::f16, float>>();
