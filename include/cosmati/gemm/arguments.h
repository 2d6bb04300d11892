// The parameters of a GEMM launch. These types do not depend on template parameters, so that the host can
// fill them for kernels compiled at run time.
#pragma once
#include "cosmati/arch/memory.h"

namespace cosmati {

// A batch of matrices in device memory, strides in elements: element (i, j) of matrix b is base(b)[i *
// row_stride + j * column_stride], base(b) = pointers ? pointers[b] : data + b * batch_stride.
struct MatrixArguments {
  void* data = nullptr;             // only read if it is an operand
  void* const* pointers = nullptr;  // an array in device memory
  Index row_stride = 0;
  Index column_stride = 0;
  Index batch_stride = 0;
};

template <class Element>
COSMATI_DEVICE Element* base_of(MatrixArguments const& matrix, Index batch) {
  if (matrix.pointers != nullptr)
    return arch::as_global(static_cast<Element*>(arch::load_constant<void*>(matrix.pointers + batch)));
  return arch::as_global(static_cast<Element*>(matrix.data)) + batch * matrix.batch_stride;
}

COSMATI_CONSTEXPR int clamp_to_int(Index value) {
  return value > 0x7fffffff ? 0x7fffffff : value < 0 ? 0 : static_cast<int>(value);
}

inline constexpr int max_kernel_operands = 32;
inline constexpr int max_kernel_stores = 8;

// The operands, scalars and stores of an expression, in its order. An operand that is not indexed by m, n or
// the batch has stride 0 in that dimension.
template <int max_operands, int max_stores, class Tensor = MatrixArguments>
struct EpilogueArguments {
  Tensor source;  // c
  Tensor operands[max_operands];
  Tensor stores[max_stores];
  double scalars[max_operands] = {};
};
struct NoEpilogueArguments {};  // for epilogues without arguments

// Every launch copies its parameters, so most kernels use the small size.
inline constexpr int few_kernel_operands = 4, few_kernel_stores = 2;
using FewEpilogueArguments = EpilogueArguments<few_kernel_operands, few_kernel_stores>;
using ManyEpilogueArguments = EpilogueArguments<max_kernel_operands, max_kernel_stores>;

COSMATI_CONSTEXPR bool few_arguments_do(int operands, int stores, int scalars) {
  return operands <= few_kernel_operands && stores <= few_kernel_stores && scalars <= few_kernel_operands;
}

// How tiles are assigned to blocks: see gemm/scheduler.h.
struct ScheduleArguments {
  Index first_batch = 0;  // a grid has at most 65535 matrices; a larger batch takes several launches
  Index batch = 1;        // matrices of this launch, for persistent blocks
  int splits = 1;         // split-K: parts of k, each computed by a different block
  int streamed =
      0;  // stream-K: number of leading tiles (of clusters) whose steps are divided into equal ranges
  int blocks = 0;            // stream-K: blocks of the grid, for the launcher
  void* partials = nullptr;  // slots in the workspace for partial sums
  // One flag per slot, equal to `tag` when its sums are ready. No flag equals `tag` before or after the
  // launch; for an uninitialized workspace, use a fresh tag (gemm/partial_sums.h).
  unsigned long long* flags = nullptr;
  unsigned long long tag = 0;
};

// The parameters of a GEMM kernel: d(m, n) = epilogue(sum over k of a(m, k) * b(k, n), ...).
template <class ArgumentsA, class ArgumentsB, class Epilogue, class Destination>
struct GemmParameters {
  Index m = 0, n = 0, k = 0;
  ArgumentsA a;
  ArgumentsB b;
  Destination d;
  Epilogue epilogue;
  ScheduleArguments schedule;
};

// The arguments for strided matrices, as used by kernels composed at run time.
template <class Epilogue>
using MatrixGemmParameters = GemmParameters<MatrixArguments, MatrixArguments, Epilogue, MatrixArguments>;

static_assert(sizeof(MatrixGemmParameters<ManyEpilogueArguments>) <= 4096,
              "kernel parameters are limited to 4096 bytes");

}  // namespace cosmati
