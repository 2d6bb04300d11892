// WMMA does not support products of signed and unsigned bytes.
// expect: multiply wmma requires two operands of one type: f16, bf16, tf32, f64, s8 or u8
// names: OperandsOfWmma<
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 64;
  changed.thread_m = 4;
  changed.thread_n = 8;
  changed.multiply = cosmati::Multiply::wmma;
  changed.epilogue = cosmati::EpilogueSchedule::staged;
  return changed;
}();
auto const parameters =
    mistake::parameters<mistake::Gemm<policy, cosmati::u8, int, cosmati::IdentityEpilogue<int>,
                                      cosmati::StridedDestination<int, 1>, mistake::Source<cosmati::s8>>>();
