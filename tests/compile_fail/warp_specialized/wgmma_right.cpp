// Nothing is wrong here: the control of the mistakes with wgmma.
// expect: nothing
#include "tests/compile_fail/warp_specialized/wgmma.h"

auto const parameters = mistake::parameters<mistake::Gemm<>>();
