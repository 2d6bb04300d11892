// A matrix product in canonical form for GPU kernels: the result is contiguous along n if possible, and both
// operands are indexed (outer, depth).
#pragma once
#include <optional>
#include <vector>

#include "cosmati/ops/gemm.h"
#include "src/ops/number_types.h"

namespace cosmati::plan {

// Element (i, j) at i * row_stride + j * column_stride. Strides along an extent of 1 are 0.
struct MatrixForm {
  DataType type = DataType::f32;
  Index row_stride = 0, column_stride = 0, batch_stride = 0;
  int alignment = 1;  // bytes
  bool by_m = true, by_n = true;
  int width = 1;  // neighbors along n that may be accessed together
  bool present = false;
  bool by_threads = false;  // brought by threads, for a kernel whose operands come by the copy engine
};

struct CanonicalGemm {
  Index m = 0, n = 0, k = 0, batch = 0;
  bool swapped = false;
  MatrixForm a, b;  // (outer, depth): rows are m or n, columns are k
  MatrixForm d, c;  // (m, n)
  std::vector<MatrixForm> operands, stores;
  DataType sum = DataType::f32;
  DataType evaluation = DataType::f32;  // in which the epilogue is evaluated
  bool identity = true;                 // the epilogue is `acc`
  bool by_pointers = false;             // a, b, c and d are arrays of pointers
};

// `swapped`: which of the two products that give d; without it the one whose rows of d are contiguous.
CanonicalGemm canonical(GemmProblem const& problem, std::optional<bool> swapped = {});

// The major of d: contiguous along n (depth), otherwise along m (outer).
Along direction_of_result(CanonicalGemm const& form);

// The most neighbors along `along`, of at most 16 bytes, of which every aligned run is aligned, where the
// operand has these extents.
int width_of(MatrixForm const& operand, Along along, Index outer, Index depth);

// The major of the operand, and the widest vector of at most 16 bytes with which all its runs are aligned.
OperandAccess access_of(MatrixForm const& operand);

}  // namespace cosmati::plan
