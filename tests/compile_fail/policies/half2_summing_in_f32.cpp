// Sums of half2 are f16.
// expect: multiply half2 accumulates in f16
// names: SumsOfHalf2<float>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.multiply = cosmati::Multiply::half2;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, cosmati::f16, float>>();
