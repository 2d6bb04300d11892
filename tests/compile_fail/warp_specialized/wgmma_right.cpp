// The control of the mistakes with wgmma: nothing is wrong here.
// expect: nothing
#include "tests/compile_fail/warp_specialized/wgmma.h"

auto const parameters = mistake::parameters<mistake::Gemm<>>();
