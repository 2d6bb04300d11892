// A step of depth ten, loaded four elements at a time.
// expect: block_k must be a multiple of the depth of this operand's runs; use a power of two
// names: OperandLoader<
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_k = 10;
  return changed;
}();
using Destination = cosmati::StridedDestination<float, 1>;
using Gemm = mistake::Gemm<policy, float, float, cosmati::IdentityEpilogue<float>, Destination,
                           mistake::Source<float, 4>>;
auto const kernel = &cosmati::gemm_kernel<Gemm>;
