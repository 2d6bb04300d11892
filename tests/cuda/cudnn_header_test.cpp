// What cli/cudnn.h declares is what cuDNN's own headers declare; compiled where there are some.
#include <gtest/gtest.h>

#include <cstddef>

#include "cli/cudnn.h"
#include "tests/cuda/plain_of.h"
#if __has_include(<cudnn.h>)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn.h>
#endif

#if defined(CUDNN_MAJOR)
namespace {

using namespace cosmati::cli::cudnn;
using cosmati::cli::equal;
using cosmati::cli::PlainOf;

#define COSMATI_SAME_FUNCTION(name, result, parameters) \
  static_assert(std::is_same_v<PlainOf<result parameters>::type, PlainOf<decltype(::name)>::type>, #name);
COSMATI_CUDNN(COSMATI_SAME_FUNCTION)

static_assert(equal(Status::success, CUDNN_STATUS_SUCCESS));
static_assert(equal(Status::not_supported, CUDNN_STATUS_NOT_SUPPORTED));
static_assert(equal(Number::f32, CUDNN_DATA_FLOAT));
static_assert(equal(Number::f64, CUDNN_DATA_DOUBLE));
static_assert(equal(Number::f16, CUDNN_DATA_HALF));
static_assert(equal(Number::bf16, CUDNN_DATA_BFLOAT16));
static_assert(equal(Format::nchw, CUDNN_TENSOR_NCHW));
static_assert(equal(Format::nhwc, CUDNN_TENSOR_NHWC));
static_assert(equal(Mode::cross_correlation, CUDNN_CROSS_CORRELATION));
static_assert(equal(Math::standard, CUDNN_DEFAULT_MATH));
static_assert(equal(Math::tensor_op, CUDNN_TENSOR_OP_MATH));
static_assert(equal(Math::fma, CUDNN_FMA_MATH));

template <class Theirs>
constexpr bool is_performance() {
  return sizeof(Performance) == sizeof(Theirs) &&
         offsetof(Performance, algorithm) == offsetof(Theirs, algo) &&
         offsetof(Performance, status) == offsetof(Theirs, status) &&
         offsetof(Performance, milliseconds) == offsetof(Theirs, time) &&
         offsetof(Performance, workspace_bytes) == offsetof(Theirs, memory) &&
         offsetof(Performance, math) == offsetof(Theirs, mathType);
}
static_assert(is_performance<cudnnConvolutionFwdAlgoPerf_t>());
static_assert(is_performance<cudnnConvolutionBwdDataAlgoPerf_t>());
static_assert(is_performance<cudnnConvolutionBwdFilterAlgoPerf_t>());

TEST(CudnnHeader, AgreesWithTheLibrary) { SUCCEED() << "cudnn.h of cuDNN " << CUDNN_VERSION; }

}  // namespace
#else
TEST(CudnnHeader, AgreesWithTheLibrary) { GTEST_SKIP() << "there is no cudnn.h here"; }
#endif
