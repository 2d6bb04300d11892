// Tensor maps of operands, as the host encodes them.
#pragma once
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/tile/tensor_box.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::emulator {

// The tensor map of a batch of (outer, depth) matrices that are contiguous along `along`.
inline arch::TensorMap operand_map(plan::MatrixForm const& operand, void const* data, Index outer,
                                   Index depth, Index batch, Along along, TensorBox const& box) {
  int const size = size_of(operand.type);
  bool const along_depth = along == Along::depth;
  Index const lines = along_depth ? outer : depth;
  Index const line_stride = along_depth ? operand.row_stride : operand.column_stride;
  // Nobody steps along an extent of 1, but a stride has to be a multiple of 16 bytes there, too.
  return encode_tensor_map(
      {.address = const_cast<void*>(data),
       .rank = 3,
       .element_bytes = size,
       .extent = {along_depth ? depth : outer, lines, batch},
       .stride = {0, lines > 1 ? line_stride * size : 16, batch > 1 ? operand.batch_stride * size : 16},
       .box = {box.row, box.slice_rows, 1},
       .swizzle_bytes = box.row * size});
}

}  // namespace cosmati::emulator
