// The control: nothing is wrong here.
// expect: nothing
#include "tests/compile_fail/mistake.h"

auto const parameters = mistake::parameters<mistake::Gemm<>>();
