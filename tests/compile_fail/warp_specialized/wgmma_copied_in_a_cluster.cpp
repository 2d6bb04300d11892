// A cluster cannot share operands copied by threads.
// expect: blocks of a cluster share only operands loaded by TMA
// names: OperandsByThreads<
#include "tests/compile_fail/warp_specialized/wgmma.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.cluster_m = 2;
  return changed;
}();
using Traits =
    cosmati::WarpSpecializedTraits<policy, cosmati::StridedSource<cosmati::bf16, cosmati::Along::k, 4>,
                                   cosmati::TensorSource<cosmati::bf16, cosmati::Along::k>, float,
                                   cosmati::IdentityEpilogue<float>, cosmati::TensorDestination<float>>;
auto const parameters = mistake::parameters<Traits>();
