// A number instead of a policy.
// expect: the policy of a SimpleGemm is a PolicyName or a GemmPolicy
#include "tests/compile_fail/mistake.h"

#include "cosmati/gemm/simple.h"

auto const parameters = mistake::parameters<cosmati::SimpleGemm<float, cosmati::NN, 128>>();
