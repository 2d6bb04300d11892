// A matrix product in canonical form for GPU kernels: the result is contiguous along n if possible, and both
// operands are indexed (outer, depth).
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "cosmati/ops/gemm.h"
#include "src/ops/number_types.h"

namespace cosmati::plan {

// Element (i, j) is at i * row_stride + j * column_stride. Strides along an extent of 1 are 0.
struct MatrixForm {
  DataType type = DataType::f32;
  Index row_stride = 0, column_stride = 0, batch_stride = 0;
  int alignment = 1;  // bytes
  bool by_m = true, by_n = true;
  int width = 1;  // contiguous elements along n per access
  bool present = false;
  bool by_threads = false;  // loaded by threads, in a kernel whose operands are otherwise loaded by TMA
  bool transposed = false;  // MN-major in memory; the threads write K-major tiles
};

struct CanonicalGemm {
  Index m = 0, n = 0, k = 0, batch = 0;
  bool swapped = false;
  MatrixForm a, b;  // (outer, depth): rows are m or n, columns are k
  MatrixForm d, c;  // (m, n)
  std::vector<MatrixForm> operands, stores;
  DataType sum = DataType::f32;
  DataType evaluation = DataType::f32;  // type in which the epilogue is evaluated
  bool identity = true;                 // the epilogue is `acc`
  bool by_pointers = false;             // a, b, c and d are arrays of pointers
  bool of_pieces = false;               // a and b hold pieces of f32 factors (plan/gemm/pieces.h)
  bool fast_sums = false;               // sums of 8-bit floats need not be promoted
};

// `swapped` selects one of the two products that compute d; the default is the one for which rows of d are
// contiguous.
CanonicalGemm canonical(GemmProblem const& problem, std::optional<bool> swapped = {});

// Returns the number of matrices of an operand in memory: 1 if all products share it.
inline Index matrices_of(MatrixForm const& operand, CanonicalGemm const& form) {
  return operand.batch_stride == 0 && !form.by_pointers ? std::min<Index>(form.batch, 1) : form.batch;
}

// Returns the major of d: Along::k if d is contiguous along n, otherwise Along::mn.
Along direction_of_result(CanonicalGemm const& form);

// Returns the width of the widest vectors along `along`, at most 16 bytes, at which all runs of an operand
// with these extents are aligned.
int width_of(MatrixForm const& operand, Along along, Index outer, Index depth);

// Returns the major of the operand, and the widest vector, at most 16 bytes, at which all its runs are
// aligned.
OperandAccess access_of(MatrixForm const& operand);

}  // namespace cosmati::plan
