// Checks the declarations of cli/bench/peers/cublaslt.h against the toolkit's cublasLt.h; compiled if it is
// installed.
#include <gtest/gtest.h>

#include <cstddef>

#include "cli/bench/peers/cublaslt.h"
#include "tests/cuda/plain_of.h"
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

#if defined(CUBLAS_VERSION)
namespace {

using namespace cosmati::cli::cublaslt;
using cosmati::cli::equal;
using cosmati::cli::PlainOf;

#define COSMATI_SAME_FUNCTION(name, result, parameters) \
  static_assert(std::is_same_v<PlainOf<result parameters>::type, PlainOf<decltype(::name)>::type>, #name);
COSMATI_CUBLASLT(COSMATI_SAME_FUNCTION)

static_assert(equal(Status::success, CUBLAS_STATUS_SUCCESS));
static_assert(equal(Status::not_supported, CUBLAS_STATUS_NOT_SUPPORTED));
static_assert(equal(Compute::f16, CUBLAS_COMPUTE_16F));
static_assert(equal(Compute::f32, CUBLAS_COMPUTE_32F));
static_assert(equal(Compute::f64, CUBLAS_COMPUTE_64F));
static_assert(equal(Compute::s32, CUBLAS_COMPUTE_32I));
static_assert(equal(Compute::f32_of_tf32, CUBLAS_COMPUTE_32F_FAST_TF32));
static_assert(equal(Number::f32, CUDA_R_32F));
static_assert(equal(Number::f64, CUDA_R_64F));
static_assert(equal(Number::f16, CUDA_R_16F));
static_assert(equal(Number::s8, CUDA_R_8I));
static_assert(equal(Number::s32, CUDA_R_32I));
static_assert(equal(Number::bf16, CUDA_R_16BF));
static_assert(equal(Number::e4m3, CUDA_R_8F_E4M3));
static_assert(equal(Number::e5m2, CUDA_R_8F_E5M2));
static_assert(equal(ProductAttribute::transposed_a, CUBLASLT_MATMUL_DESC_TRANSA));
static_assert(equal(ProductAttribute::transposed_b, CUBLASLT_MATMUL_DESC_TRANSB));
static_assert(equal(ProductAttribute::fast_sums, CUBLASLT_MATMUL_DESC_FAST_ACCUM));
static_assert(equal(MatrixAttribute::batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
static_assert(equal(MatrixAttribute::batch_stride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
#if CUBLAS_VER_MAJOR >= 13
static_assert(equal(MatrixAttribute::batch_mode, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE));
static_assert(batch_by_pointers == CUBLASLT_BATCH_MODE_POINTER_ARRAY);
#endif
static_assert(equal(PreferenceAttribute::max_workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(equal(PreferenceAttribute::min_alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
static_assert(equal(PreferenceAttribute::min_alignment_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES));
static_assert(equal(PreferenceAttribute::min_alignment_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES));
static_assert(equal(PreferenceAttribute::min_alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(equal(operation_plain, CUBLAS_OP_N) && equal(operation_transposed, CUBLAS_OP_T));

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(Heuristic, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(Heuristic, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

TEST(CublasLtHeader, AgreesWithTheToolkit) { SUCCEED() << "cublasLt.h of cuBLAS " << CUBLAS_VERSION; }

}  // namespace
#else
TEST(CublasLtHeader, AgreesWithTheToolkit) { GTEST_SKIP() << "there is no cublasLt.h here"; }
#endif
