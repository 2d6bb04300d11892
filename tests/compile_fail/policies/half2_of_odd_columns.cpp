// A register of half2 holds two columns.
// expect: multiply half2 keeps two columns in a register: thread_n must be even
// names: ColumnsOfHalf2<1>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.warp_n = 8;
  changed.thread_n = 1;
  changed.multiply = cosmati::Multiply::half2;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, cosmati::f16, cosmati::f16>>();
