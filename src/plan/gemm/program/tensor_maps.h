// Tensor maps of the matrices of a product.
#pragma once
#include "cosmati/gemm/tensor_source.h"
#include "cosmati/tile/tensor_box.h"
#include "src/plan/gemm/canonical.h"
#include "src/program/program.h"

namespace cosmati::plan {

// The stride along an extent of 1 is not used, but must still be a multiple of 16 bytes.
inline long long stride_bytes(Index stride, Index extent, int element_bytes) {
  return extent > 1 ? stride * element_bytes : 16;
}

// The bytes over which TMA swizzles the rows of a box; 0 if it cannot.
inline int swizzle_bytes(int row_bytes) {
  Swizzle const swizzle = swizzle_of(row_bytes);
  return swizzle == Swizzle::none ? 0 : span_of(swizzle);
}

// A batch of (rows, columns) matrices that are contiguous along the columns or along the rows: boxes of
// `box_neighbors` by `box_lines` of one matrix, swizzled if possible.
inline program::TiledTensor tiled_tensor(MatrixForm const& matrix, void const* data, Index rows,
                                         Index columns, Index batch, bool along_columns, int box_neighbors,
                                         int box_lines) {
  int const size = size_of(matrix.type);
  Index const neighbors = along_columns ? columns : rows, lines = along_columns ? rows : columns;
  Index const line_stride = along_columns ? matrix.row_stride : matrix.column_stride;
  return {
      .address = const_cast<void*>(data),
      .rank = 3,
      .element_bytes = size,
      .extent = {neighbors, lines, batch},
      .stride = {0, stride_bytes(line_stride, lines, size), stride_bytes(matrix.batch_stride, batch, size)},
      .box = {box_neighbors, box_lines, 1},
      .swizzle_bytes = swizzle_bytes(box_neighbors * size)};
}

// The same for an operand of (outer, depth) matrices that TensorSource loads.
inline program::TiledTensor tiled_tensor(MatrixForm const& operand, void const* data, Index outer,
                                         Index depth, Index batch, Along along, TensorBox const& box) {
  return tiled_tensor(operand, data, outer, depth, batch, along == Along::k, box.row,
                      lines_of_copy(box, along, outer));
}

// Returns a map of the whole address space, for matrices like that of `tensor` at any address.
inline program::TiledTensor address_space(program::TiledTensor tensor) {
  tensor.address = reinterpret_cast<void*>(address_origin);
  tensor.rank = 4;
  for (int i : {2, 3}) tensor.box[i] = 1;
  tensor.extent[2] = address_units, tensor.stride[2] = 16;
  tensor.extent[3] = address_ranges, tensor.stride[3] = 16 * address_units;
  return tensor;
}

}  // namespace cosmati::plan
