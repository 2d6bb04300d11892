// What a launch hands to a GEMM kernel. None of these types depends on a template parameter, so that the host
// can fill them for a kernel that only the run-time compiler has seen.
#pragma once
#include "cosmati/arch/memory.h"

namespace cosmati {

// A batch of matrices in device memory, strides in elements: element (i, j) of matrix b lies at
// base(b)[i * row_stride + j * column_stride], base(b) = pointers ? pointers[b] : data + b * batch_stride.
struct MatrixArguments {
  void* data = nullptr;             // read only, if it is an operand
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

// The named operands, scalars and extra outputs of an expression, by their number in it. An operand that is
// not indexed by m, n or the batch has a stride of 0 there.
template <int most_operands, int most_stores, class Tensor = MatrixArguments>
struct EpilogueArguments {
  Tensor source;  // c
  Tensor operands[most_operands];
  Tensor stores[most_stores];
  double scalars[most_operands] = {};
};
struct NoEpilogueArguments {};  // of an epilogue that has none of them

// Every launch copies its parameters, so most kernels have those of a small expression.
inline constexpr int few_kernel_operands = 4, few_kernel_stores = 2;
using FewEpilogueArguments = EpilogueArguments<few_kernel_operands, few_kernel_stores>;
using ManyEpilogueArguments = EpilogueArguments<max_kernel_operands, max_kernel_stores>;

COSMATI_CONSTEXPR bool few_arguments_do(int operands, int stores, int scalars) {
  return operands <= few_kernel_operands && stores <= few_kernel_stores && scalars <= few_kernel_operands;
}

// How the work is dealt: see gemm/scheduler.h.
struct ScheduleArguments {
  Index first_batch = 0;  // a grid has at most 65535 matrices; a larger batch takes several launches
  Index batch = 1;        // matrices of this launch, where blocks stay for several tiles
  int splits = 1;         // split-K: parts of k, each computed by a block of its own
  int streamed =
      0;           // stream-K: tiles (of clusters), the first ones, whose steps are dealt out in equal ranges
  int blocks = 0;  // stream-K: of the grid, for those who launch
  void* partials = nullptr;  // sums of a part of k that wait to be added: slots in the workspace
  // One for each slot: `tag` where its sums are there. No flag holds it before the launch, and none after it;
  // a workspace whose content nobody knows takes a tag that nobody has used (gemm/partial_sums.h).
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

// Of strided matrices: what the run-time compiler composes.
template <class Epilogue>
using MatrixGemmParameters = GemmParameters<MatrixArguments, MatrixArguments, Epilogue, MatrixArguments>;

static_assert(sizeof(MatrixGemmParameters<ManyEpilogueArguments>) <= 4096,
              "what every driver passes to a kernel");

}  // namespace cosmati
