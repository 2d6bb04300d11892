// Sums of fma are f32, f64 or s32.
// expect: multiply fma accumulates in f32, f64 or s32
// names: SumsOfFma<
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, cosmati::f16, cosmati::f16>>();
