// cuBLASLt, loaded on first use. Its types and functions are declared here because a build needs no CUDA
// toolkit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

struct CUstream_st;

namespace cosmati::cli::cublaslt {

struct Context;
struct Product;     // cublasLtMatmulDescOpaque_t
struct Matrix;      // cublasLtMatrixLayoutOpaque_t
struct Preference;  // cublasLtMatmulPreferenceOpaque_t

enum class Status : unsigned { success = 0, not_supported = 15 };  // cublasStatus_t
enum class Compute : unsigned { f16 = 64, f32 = 68, f64 = 70, s32 = 72, f32_of_tf32 = 77 };
enum class Number : unsigned {  // cudaDataType
  f32 = 0,
  f64 = 1,
  f16 = 2,
  s8 = 3,
  s32 = 10,
  bf16 = 14,
  e4m3 = 28,
  e5m2 = 29
};
enum class ProductAttribute : unsigned { transposed_a = 3, transposed_b = 4, fast_sums = 25 };
enum class MatrixAttribute : unsigned { batch_count = 5, batch_stride = 6, batch_mode = 8 };
enum class PreferenceAttribute : unsigned {
  max_workspace_bytes = 1,
  min_alignment_a = 5,
  min_alignment_b = 6,
  min_alignment_c = 7,
  min_alignment_d = 8
};
constexpr std::uint32_t batch_by_pointers = 1;                         // cublasLtBatchMode_t
constexpr std::int32_t operation_plain = 0, operation_transposed = 1;  // cublasOperation_t

struct Algorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};

struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

// Every function in use, by its exported name.
#define COSMATI_CUBLASLT(FUNCTION)                                                                         \
  FUNCTION(cublasLtCreate, Status, (Context * *context))                                                   \
  FUNCTION(cublasLtDestroy, Status, (Context * context))                                                   \
  FUNCTION(cublasLtGetVersion, std::size_t, ())                                                            \
  FUNCTION(cublasLtGetStatusName, char const*, (Status status))                                            \
  FUNCTION(cublasLtMatmulDescCreate, Status, (Product * *product, Compute compute, Number scale))          \
  FUNCTION(cublasLtMatmulDescDestroy, Status, (Product * product))                                         \
  FUNCTION(cublasLtMatmulDescSetAttribute, Status,                                                         \
           (Product * product, ProductAttribute attribute, void const* value, std::size_t bytes))          \
  FUNCTION(cublasLtMatrixLayoutCreate, Status,                                                             \
           (Matrix * *matrix, Number type, std::uint64_t rows, std::uint64_t columns,                      \
            std::int64_t leading_dimension))                                                               \
  FUNCTION(cublasLtMatrixLayoutDestroy, Status, (Matrix * matrix))                                         \
  FUNCTION(cublasLtMatrixLayoutSetAttribute, Status,                                                       \
           (Matrix * matrix, MatrixAttribute attribute, void const* value, std::size_t bytes))             \
  FUNCTION(cublasLtMatmulPreferenceCreate, Status, (Preference * *preference))                             \
  FUNCTION(cublasLtMatmulPreferenceDestroy, Status, (Preference * preference))                             \
  FUNCTION(cublasLtMatmulPreferenceSetAttribute, Status,                                                   \
           (Preference * preference, PreferenceAttribute attribute, void const* value, std::size_t bytes)) \
  FUNCTION(cublasLtMatmulAlgoGetHeuristic, Status,                                                         \
           (Context * context, Product * product, Matrix * a, Matrix * b, Matrix * c, Matrix * d,          \
            Preference * preference, int wanted, Heuristic* results, int* found))                          \
  FUNCTION(cublasLtMatmul, Status,                                                                         \
           (Context * context, Product * product, void const* alpha, void const* a, Matrix* matrix_a,      \
            void const* b, Matrix* matrix_b, void const* beta, void const* c, Matrix* matrix_c, void* d,   \
            Matrix* matrix_d, Algorithm const* algorithm, void* workspace, std::size_t workspace_bytes,    \
            CUstream_st* stream))

struct Library {
#define COSMATI_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  COSMATI_CUBLASLT(COSMATI_MEMBER)
#undef COSMATI_MEMBER
};

// Loads the file named by COSMATI_CUBLASLT, otherwise libcublasLt.so.13 or .12 from the library folders.
// Throws Error(unavailable) with the reason.
Library const& library();
std::string version();  // "cuBLASLt 13.1.0"

// Throws Error("cuBLASLt: CALL: NAME") unless the call succeeded.
void check(char const* call, Status status);

}  // namespace cosmati::cli::cublaslt
