// cuBLAS's call for groups of products, loaded on first use. Its types and functions are declared here
// because a build needs no CUDA toolkit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/bench/peers/cublaslt.h"

namespace cosmati::cli::cublas {

struct Context;

using cublaslt::Compute;
using cublaslt::Number;
using cublaslt::Status;
enum class Operation : unsigned { plain = 0, transposed = 1 };  // cublasOperation_t

// Every function in use, by its exported name.
#define COSMATI_CUBLAS(FUNCTION)                                                                            \
  FUNCTION(cublasCreate_v2, Status, (Context * *context))                                                   \
  FUNCTION(cublasDestroy_v2, Status, (Context * context))                                                   \
  FUNCTION(cublasGetVersion_v2, Status, (Context * context, int* version))                                  \
  FUNCTION(cublasGetStatusName, char const*, (Status status))                                               \
  FUNCTION(cublasSetStream_v2, Status, (Context * context, CUstream_st * stream))                           \
  FUNCTION(cublasSetWorkspace_v2, Status, (Context * context, void* workspace, std::size_t bytes))          \
  FUNCTION(cublasGemmGroupedBatchedEx_64, Status,                                                           \
           (Context * context, Operation const* a_operations, Operation const* b_operations,                \
            std::int64_t const* m, std::int64_t const* n, std::int64_t const* k, void const* alphas,        \
            void const* const* a, Number a_type, std::int64_t const* a_leading, void const* const* b,       \
            Number b_type, std::int64_t const* b_leading, void const* betas, void* const* c, Number c_type, \
            std::int64_t const* c_leading, std::int64_t groups, std::int64_t const* group_sizes,            \
            Compute compute))

struct Library {
#define COSMATI_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  COSMATI_CUBLAS(COSMATI_MEMBER)
#undef COSMATI_MEMBER
};

// Loads the file named by COSMATI_CUBLAS, otherwise libcublas.so.13 or .12 from the library folders. Throws
// Error(unavailable) with the reason.
Library const& library();

// Throws Error("cuBLAS: CALL: NAME") unless the call succeeded.
void check(char const* call, Status status);

}  // namespace cosmati::cli::cublas
