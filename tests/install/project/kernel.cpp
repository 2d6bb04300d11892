// Uses the building blocks of kernels from the installed headers.
#include <cosmati/gemm/kernel.h>
#include <cosmati/gemm/simple.h>

using Gemm = cosmati::SimpleGemm<float, cosmati::NN, cosmati::PolicyName::small>;
static_assert(sizeof(Gemm) > 0);
