// The multiply for bytes, with float operands.
// expect: multiply dp4a supports s8 and u8 operands
// names: OperandsOfDp4a<float, float, int>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.multiply = cosmati::Multiply::dp4a;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy, float, cosmati::s32>>();
