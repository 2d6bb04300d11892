// The functions of cuBLAS that bench calls for groups, on the memory of the fake driver. Like the library, it
// loses its workspace when the stream is set, and needs the caller's workspace while a stream is captured.
#include "cli/bench/peers/cublas.h"
#include "cosmati/core/number.h"
#include "tests/cuda/fake_libcuda.h"

namespace blas = cosmati::cli::cublas;
using blas::Context;
using blas::Number;
using blas::Operation;
using blas::Status;

namespace cosmati::cli::cublas {
struct Context {
  CUstream_st* stream = nullptr;
  bool has_workspace = false;
};
}  // namespace cosmati::cli::cublas

namespace {

cosmati::DataType data_type_of(Number number) {
  switch (number) {
    case Number::f64: return cosmati::DataType::f64;
    case Number::f16: return cosmati::DataType::f16;
    case Number::bf16: return cosmati::DataType::bf16;
    default: return cosmati::DataType::f32;
  }
}

double element_of(void const* data, Number type, Operation operation, std::int64_t leading, std::int64_t row,
                  std::int64_t column) {
  bool const plain = operation == Operation::plain;
  return cosmati::load(data_type_of(type), data, plain ? row + column * leading : column + row * leading);
}

}  // namespace

extern "C" {

Status cublasCreate_v2(Context** context) {
  *context = new Context;
  return Status::success;
}
Status cublasDestroy_v2(Context* context) {
  delete context;
  return Status::success;
}
Status cublasGetVersion_v2(Context*, int* version) {
  *version = 130102;
  return Status::success;
}
char const* cublasGetStatusName(Status) { return "CUBLAS_STATUS_OF_THE_FAKE"; }
Status cublasSetStream_v2(Context* context, CUstream_st* stream) {
  *context = {stream, false};
  return Status::success;
}
Status cublasSetWorkspace_v2(Context* context, void* workspace, std::size_t) {
  context->has_workspace = workspace != nullptr;
  return Status::success;
}

// Arrays of pointers are in device memory, arrays of sizes in host memory.
Status cublasGemmGroupedBatchedEx_64(Context* context, Operation const* a_operations,
                                     Operation const* b_operations, std::int64_t const* m,
                                     std::int64_t const* n, std::int64_t const* k, void const* alphas,
                                     void const* const* a, Number a_type, std::int64_t const* a_leading,
                                     void const* const* b, Number b_type, std::int64_t const* b_leading,
                                     void const*, void* const* c, Number c_type,
                                     std::int64_t const* c_leading, std::int64_t groups, std::int64_t const*,
                                     blas::Compute compute) {
  if (!context->has_workspace) return Status::not_supported;
  auto const work = [=] {
    for (std::int64_t g = 0; g < groups; ++g) {
      double const alpha = compute == blas::Compute::f64
                               ? static_cast<double const*>(alphas)[g]
                               : static_cast<double>(static_cast<float const*>(alphas)[g]);
      for (std::int64_t row = 0; row < m[g]; ++row)
        for (std::int64_t column = 0; column < n[g]; ++column) {
          double sum = 0;
          for (std::int64_t i = 0; i < k[g]; ++i)
            sum += element_of(a[g], a_type, a_operations[g], a_leading[g], row, i) *
                   element_of(b[g], b_type, b_operations[g], b_leading[g], i, column);
          cosmati::store(data_type_of(c_type), c[g], row + column * c_leading[g], alpha * sum);
        }
    }
  };
  return fake::enqueue(context->stream, work) ? Status::success : Status::not_supported;
}

}  // extern "C"
