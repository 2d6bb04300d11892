// Nothing is wrong here: the control of this experiment.
// expect: nothing
#include "tests/compile_fail/mistake.h"

auto const parameters = mistake::parameters<mistake::Gemm<>>();
