// Tensor maps, which describe a batch of matrices for TMA (sm_90 and later).
#pragma once
#include "cosmati/arch/tensor_copy.h"
#include "src/plan/conv/tensor_windows.h"
#include "src/plan/gemm/canonical.h"
#include "src/program/program.h"

namespace cosmati::cuda {

// The calling thread has a current context. Throws Error if the driver refuses.
arch::TensorMap encode_by_driver(program::TiledTensor const& tensor);
arch::TensorMap encode_by_driver(program::WindowedTensor const& tensor);

// A map of rank 3, (neighbors, lines, batch), for boxes of `box_neighbours` by `box_lines` of one matrix,
// swizzled over the bytes of box_neighbours (32, 64 or 128). `rows` and `columns` are the extents of the
// strides in `matrix`; neighbors lie along the columns, or along the rows. Throws Error if the driver
// refuses.
arch::TensorMap tensor_map(plan::MatrixForm const& matrix, void const* data, Index rows, Index columns,
                           Index batch, bool along_columns, int box_neighbours, int box_lines);

// Maps of rank 4 for a convolution's operands (cosmati/conv/tensor_windows.h): boxes of `box_channels` by
// `box_windows`, unrolled in im2col mode, and of one tap's `box_neighbours` by `box_lines`.
arch::TensorMap image_map(plan::ImageMap const& image, DataType element, void const* data, int box_channels,
                          int box_windows);
arch::TensorMap filter_map(plan::FilterMap const& filter, DataType element, void const* data,
                           int box_neighbours, int box_lines);

}  // namespace cosmati::cuda
