// More threads than a block may have.
// expect: a block has at most 1024 threads
// names: ThreadsOfABlock<2048>
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.block_m = 256;
  changed.block_n = 256;
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
