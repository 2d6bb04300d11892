// Encodes tensor maps by the driver's function: no call to the device.
#include "src/backend/cuda/tensor_map.h"

#include <cstdint>

#include "src/backend/cuda/driver.h"

namespace cosmati::cuda {

arch::TensorMap tensor_map(plan::MatrixForm const& matrix, void const* data, Index rows, Index columns,
                           Index batch, bool along_columns, int box_neighbours, int box_lines) {
  int const size = size_of(matrix.type);
  Index const neighbours = along_columns ? columns : rows, lines = along_columns ? rows : columns;
  Index const line_stride = along_columns ? matrix.row_stride : matrix.column_stride;
  // Nobody steps along an extent of 1, but a stride has to be a multiple of 16 bytes there, too.
  auto const bytes = [size](Index stride, Index extent) {
    return extent > 1 ? static_cast<std::uint64_t>(stride * size) : std::uint64_t{16};
  };
  std::uint64_t const extents[] = {static_cast<std::uint64_t>(neighbours), static_cast<std::uint64_t>(lines),
                                   static_cast<std::uint64_t>(batch)};
  std::uint64_t const strides[] = {bytes(line_stride, lines), bytes(matrix.batch_stride, batch)};
  unsigned const box[] = {static_cast<unsigned>(box_neighbours), static_cast<unsigned>(box_lines), 1};
  unsigned const steps[] = {1, 1, 1};
  int const row_bytes = box_neighbours * size;
  // Bits are moved, whatever they mean.
  TensorMapType const type = size == 1   ? TensorMapType::u8
                             : size == 2 ? TensorMapType::u16
                             : size == 4 ? TensorMapType::u32
                                         : TensorMapType::u64;
  TensorMapSwizzle const swizzle = row_bytes == 128  ? TensorMapSwizzle::bytes128
                                   : row_bytes == 64 ? TensorMapSwizzle::bytes64
                                   : row_bytes == 32 ? TensorMapSwizzle::bytes32
                                                     : TensorMapSwizzle::none;
  arch::TensorMap map{};
  driver().cuTensorMapEncodeTiled(&map, type, 3, const_cast<void*>(data), extents, strides, box, steps,
                                  TensorMapInterleave::none, swizzle, TensorMapPromotion::bytes256,
                                  TensorMapFill::zeros);
  return map;
}

}  // namespace cosmati::cuda
