// Blocks that share a tile along K cannot have ranges of steps.
// expect: cluster_k > 1 requires partition tiles or split_k, not stream_k
// names: ClusterAlongK<2, 8, 1, 1, 64, false, true>
#include "tests/compile_fail/warp_specialized/wgmma.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.cluster_k = 2;
  changed.partition = cosmati::Partition::stream_k;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
