// Sums of dp4a are s32.
// expect: multiply dp4a accumulates in s32
// names: OperandsOfDp4a<signed char, signed char, float>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.multiply = cosmati::Multiply::dp4a;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, cosmati::s8, float>>();
