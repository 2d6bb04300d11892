// ping_pong needs two warpgroups.
// expect: warp_specialized requires one, two or three consumer warpgroups; ping_pong requires two
// names: Consumers<4, true>
#include "tests/compile_fail/warp_specialized/wgmma.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.ping_pong = true;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
