// What a kernel of one's own is made of, from the installed headers.
#include <cosmati/gemm/kernel.h>
#include <cosmati/gemm/simple.h>

using Gemm = cosmati::SimpleGemm<float, cosmati::NN, cosmati::PolicyName::small>;
static_assert(sizeof(Gemm) > 0);
