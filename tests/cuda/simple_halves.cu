// SimpleGemm on CUDA's own 16-bit types, compiled for sm_75 and sm_90a in one program: it uses WMMA, or
// multiply-adds, whichever the lower of the two supports.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cosmati/gemm/launch.h"
#include "cosmati/gemm/simple.h"

using Half = cosmati::SimpleGemm<__half, cosmati::NN, cosmati::PolicyName::medium>;
using Bfloat = cosmati::SimpleGemm<__nv_bfloat16, cosmati::TN, cosmati::PolicyName::small>;
static_assert(Half::policy.multiply == cosmati::Multiply::wmma);
static_assert(Bfloat::policy.multiply == cosmati::Multiply::fma);

cudaError_t multiply(__half const* a, __half const* b, __half* d, int size) {
  return cosmati::launch_gemm<Half>(
      Half::params({.m = size, .n = size, .k = size, .a = {a, size}, .b = {b, size}, .d = {d, size}}));
}
cudaError_t multiply(__nv_bfloat16 const* a, __nv_bfloat16 const* b, __nv_bfloat16* d, int size) {
  return cosmati::launch_gemm<Bfloat>(
      Bfloat::params({.m = size, .n = size, .k = size, .a = {a, size}, .b = {b, size}, .d = {d, size}}));
}
