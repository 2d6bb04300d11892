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
struct EpilogueArguments {
  MatrixArguments source;  // c
  MatrixArguments operands[max_kernel_operands];
  MatrixArguments stores[max_kernel_stores];
  double scalars[max_kernel_operands] = {};
};

// How the work is dealt: see gemm/scheduler.h.
struct ScheduleArguments {
  Index first_batch = 0;         // a grid has at most 65535 matrices; a larger batch takes several launches
  int splits = 1;                // parts of k, each computed by a block of its own
  void* partials = nullptr;      // with splits > 1: accumulators of each tile and part, in the workspace
  unsigned* counters = nullptr;  // with splits > 1: one for each tile, zero before the launch
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

// Of strided matrices with an expression as epilogue: what the run-time compiler composes.
using MatrixGemmParameters =
    GemmParameters<MatrixArguments, MatrixArguments, EpilogueArguments, MatrixArguments>;

static_assert(sizeof(MatrixGemmParameters) <= 4096, "what every driver passes to a kernel");

}  // namespace cosmati
