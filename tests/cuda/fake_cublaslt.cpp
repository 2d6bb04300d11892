// The functions of cuBLASLt that bench calls, on the memory of the fake driver: products by three loops,
// three equal algorithms, and no products of 8-bit integers. Like the library, it multiplies fp8 along k only
// and adds no fp8 source; it rejects addresses less aligned than the heuristics were told, as the library
// may. The workspace size encodes the request.
#include "cli/bench/peers/cublaslt.h"

#include <cstdint>
#include <utility>

#include "cosmati/core/number.h"
#include "tests/cuda/fake_libcuda.h"

namespace lt = cosmati::cli::cublaslt;
using lt::Algorithm;
using lt::Compute;
using lt::Context;
using lt::Heuristic;
using lt::Matrix;
using lt::MatrixAttribute;
using lt::Number;
using lt::Preference;
using lt::PreferenceAttribute;
using lt::Product;
using lt::ProductAttribute;
using lt::Status;

namespace cosmati::cli::cublaslt {
struct Context {};
struct Preference {
  std::uint64_t alignment_a = 256, alignment_b = 256, alignment_c = 256, alignment_d = 256;
};
struct Product {
  Compute compute;
  bool transposed_a = false, transposed_b = false, fast_sums = false;
};
struct Matrix {
  Number type;
  std::uint64_t rows, columns;
  std::int64_t leading_dimension;
  std::int64_t batch_stride = 0;
  std::int32_t batch_count = 1;
  bool by_pointers = false;
};
}  // namespace cosmati::cli::cublaslt

namespace {

template <class Object>
Status destroy(Object* object) {
  delete object;
  return Status::success;
}

std::int32_t integer_at(void const* value) { return *static_cast<std::int32_t const*>(value); }
std::uint32_t unsigned_at(void const* value) { return *static_cast<std::uint32_t const*>(value); }

bool is_multiple(void const* address, std::uint64_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

cosmati::DataType type_of(Number number) {
  switch (number) {
    case Number::bf16: return cosmati::DataType::bf16;
    case Number::f16: return cosmati::DataType::f16;
    case Number::e4m3: return cosmati::DataType::e4m3;
    case Number::e5m2: return cosmati::DataType::e5m2;
    default: return cosmati::DataType::f32;
  }
}

bool is_fp8(Matrix const& matrix) { return matrix.type == Number::e4m3 || matrix.type == Number::e5m2; }

bool is_supported(Product const& product, Matrix const& a, Matrix const& b, Matrix const& c,
                  Matrix const& d) {
  if (a.type == Number::s8 || is_fp8(c)) return false;
  if (is_fp8(a) != is_fp8(b) || (is_fp8(d) && !is_fp8(a))) return false;
  if (!is_fp8(a)) return a.type == b.type && c.type == d.type;
  return product.compute == Compute::f32 && product.transposed_a && !product.transposed_b &&
         !(a.type == Number::e5m2 && b.type == Number::e5m2);
}

std::int64_t place(Matrix const& matrix, bool transposed, std::uint64_t row, std::uint64_t column) {
  if (transposed) std::swap(row, column);
  return static_cast<std::int64_t>(row) + static_cast<std::int64_t>(column) * matrix.leading_dimension;
}

float element(void const* data, Matrix const& matrix, bool transposed, std::uint64_t row,
              std::uint64_t column) {
  return static_cast<float>(
      cosmati::load(type_of(matrix.type), data, place(matrix, transposed, row, column)));
}

void const* matrix_of(void const* data, Matrix const& matrix, std::int32_t number) {
  if (data == nullptr) return nullptr;
  if (matrix.by_pointers) return static_cast<void const* const*>(data)[number];
  return static_cast<std::byte const*>(data) +
         number * matrix.batch_stride * cosmati::size_of(type_of(matrix.type));
}

}  // namespace

extern "C" {

Status cublasLtCreate(Context** context) {
  *context = new Context;
  return Status::success;
}
Status cublasLtDestroy(Context* context) { return destroy(context); }
std::size_t cublasLtGetVersion() { return 130102; }
char const* cublasLtGetStatusName(Status status) {
  return status == Status::not_supported ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_OF_THE_FAKE";
}
Status cublasLtMatmulDescCreate(Product** product, Compute compute, Number) {
  *product = new Product{compute};
  return Status::success;
}
Status cublasLtMatmulDescDestroy(Product* product) { return destroy(product); }
Status cublasLtMatmulDescSetAttribute(Product* product, ProductAttribute attribute, void const* value,
                                      std::size_t) {
  if (attribute == ProductAttribute::fast_sums)
    product->fast_sums = *static_cast<std::int8_t const*>(value) != 0;
  else
    (attribute == ProductAttribute::transposed_a ? product->transposed_a : product->transposed_b) =
        integer_at(value) == lt::operation_transposed;
  return Status::success;
}
Status cublasLtMatrixLayoutCreate(Matrix** matrix, Number type, std::uint64_t rows, std::uint64_t columns,
                                  std::int64_t leading_dimension) {
  *matrix = new Matrix{type, rows, columns, leading_dimension};
  return Status::success;
}
Status cublasLtMatrixLayoutDestroy(Matrix* matrix) { return destroy(matrix); }
Status cublasLtMatrixLayoutSetAttribute(Matrix* matrix, MatrixAttribute attribute, void const* value,
                                        std::size_t) {
  switch (attribute) {
    case MatrixAttribute::batch_count: matrix->batch_count = integer_at(value); break;
    case MatrixAttribute::batch_stride:
      matrix->batch_stride = *static_cast<std::int64_t const*>(value);
      break;
    case MatrixAttribute::batch_mode:
      matrix->by_pointers = unsigned_at(value) == lt::batch_by_pointers;
      break;
  }
  return Status::success;
}
Status cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = new Preference;
  return Status::success;
}
Status cublasLtMatmulPreferenceDestroy(Preference* preference) { return destroy(preference); }
Status cublasLtMatmulPreferenceSetAttribute(Preference* preference, PreferenceAttribute attribute,
                                            void const* value, std::size_t) {
  switch (attribute) {
    case PreferenceAttribute::min_alignment_a: preference->alignment_a = unsigned_at(value); break;
    case PreferenceAttribute::min_alignment_b: preference->alignment_b = unsigned_at(value); break;
    case PreferenceAttribute::min_alignment_c: preference->alignment_c = unsigned_at(value); break;
    case PreferenceAttribute::min_alignment_d: preference->alignment_d = unsigned_at(value); break;
    default: break;
  }
  return Status::success;
}

Status cublasLtMatmulAlgoGetHeuristic(Context*, Product* product, Matrix* a, Matrix* b, Matrix* c, Matrix* d,
                                      Preference* preference, int wanted, Heuristic* results, int* found) {
  *found = 0;
  if (!is_supported(*product, *a, *b, *c, *d)) return Status::not_supported;
  for (; *found < 3 && *found < wanted; ++*found) {
    results[*found] = {};
    results[*found].algorithm = {{preference->alignment_a, preference->alignment_b, preference->alignment_c,
                                  preference->alignment_d, 0, 0, 0, 0}};
    results[*found].workspace_bytes = product->fast_sums                         ? 4096
                                      : product->compute == Compute::f32_of_tf32 ? 2048
                                                                                 : 1024;
  }
  return Status::success;
}

Status cublasLtMatmul(Context*, Product* product, void const* alpha, void const* a, Matrix* matrix_a,
                      void const* b, Matrix* matrix_b, void const* beta, void const* c, Matrix* matrix_c,
                      void* d, Matrix* matrix_d, Algorithm const* algorithm, void*, std::size_t,
                      CUstream_st* stream) {
  auto const& alignments = algorithm->data;
  if (!is_multiple(a, alignments[0]) || !is_multiple(b, alignments[1]) || !is_multiple(c, alignments[2]) ||
      !is_multiple(d, alignments[3]))
    return Status::not_supported;
  float const scale = *static_cast<float const*>(alpha), source = *static_cast<float const*>(beta);
  auto const work = [=, product = *product, layout_a = *matrix_a, layout_b = *matrix_b, layout_c = *matrix_c,
                     layout_d = *matrix_d] {
    std::uint64_t const depth = product.transposed_a ? layout_a.rows : layout_a.columns;
    for (std::int32_t i_batch = 0; i_batch < layout_d.batch_count; ++i_batch) {
      void const *one_a = matrix_of(a, layout_a, i_batch), *one_b = matrix_of(b, layout_b, i_batch),
                 *one_c = matrix_of(c, layout_c, i_batch);
      void* const one_d = const_cast<void*>(matrix_of(d, layout_d, i_batch));
      for (std::uint64_t j = 0; j < layout_d.columns; ++j)
        for (std::uint64_t i = 0; i < layout_d.rows; ++i) {
          float sum = 0;
          for (std::uint64_t k = 0; k < depth; ++k)
            sum += element(one_a, layout_a, product.transposed_a, i, k) *
                   element(one_b, layout_b, product.transposed_b, k, j);
          float const before = source == 0 ? 0 : source * element(one_c, layout_c, false, i, j);
          cosmati::store(type_of(layout_d.type), one_d, place(layout_d, false, i, j),
                         static_cast<double>(scale * sum + before));
        }
    }
  };
  return fake::enqueue(stream, work) ? Status::success : Status::not_supported;
}

}  // extern "C"
