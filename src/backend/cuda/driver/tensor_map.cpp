// Encodes tensor maps with the driver's function, which does not access the device.
#include "src/backend/cuda/driver/tensor_map.h"

#include <cstddef>
#include <cstdint>

#include "src/backend/cuda/driver/driver.h"

namespace cosmati::cuda {

namespace {

// TMA moves bits, so only the size of the data type matters.
TensorMapType type_of(int size) {
  return size == 1   ? TensorMapType::u8
         : size == 2 ? TensorMapType::u16
         : size == 4 ? TensorMapType::u32
                     : TensorMapType::u64;
}
TensorMapSwizzle swizzle_of_row(int row_bytes) {
  return row_bytes == 128  ? TensorMapSwizzle::bytes128
         : row_bytes == 64 ? TensorMapSwizzle::bytes64
         : row_bytes == 32 ? TensorMapSwizzle::bytes32
                           : TensorMapSwizzle::none;
}
// The stride along an extent of 1 is not used, but must still be a multiple of 16 bytes.
std::uint64_t stride_bytes(Index stride, Index extent, int size) {
  return extent > 1 ? static_cast<std::uint64_t>(stride * size) : std::uint64_t{16};
}

// Extents and strides of four dimensions, in the form that both TMA modes take.
struct FourDimensions {
  std::uint64_t extents[4], strides[3];
  FourDimensions(Index const (&extent)[4], Index const (&stride)[4], int size) {
    for (int i = 0; i < 4; ++i) extents[i] = static_cast<std::uint64_t>(extent[i]);
    for (int i = 1; i < 4; ++i) strides[i - 1] = stride_bytes(stride[i], extent[i], size);
  }
};

}  // namespace

arch::TensorMap tensor_map(plan::MatrixForm const& matrix, void const* data, Index rows, Index columns,
                           Index batch, bool along_columns, int box_neighbours, int box_lines) {
  int const size = size_of(matrix.type);
  Index const neighbours = along_columns ? columns : rows, lines = along_columns ? rows : columns;
  Index const line_stride = along_columns ? matrix.row_stride : matrix.column_stride;
  std::uint64_t const extents[] = {static_cast<std::uint64_t>(neighbours), static_cast<std::uint64_t>(lines),
                                   static_cast<std::uint64_t>(batch)};
  std::uint64_t const strides[] = {stride_bytes(line_stride, lines, size),
                                   stride_bytes(matrix.batch_stride, batch, size)};
  unsigned const box[] = {static_cast<unsigned>(box_neighbours), static_cast<unsigned>(box_lines), 1};
  unsigned const steps[] = {1, 1, 1};
  arch::TensorMap map{};
  driver().cuTensorMapEncodeTiled(&map, type_of(size), 3, const_cast<void*>(data), extents, strides, box,
                                  steps, TensorMapInterleave::none, swizzle_of_row(box_neighbours * size),
                                  TensorMapPromotion::bytes256, TensorMapFill::zeros);
  return map;
}

arch::TensorMap image_map(plan::ImageMap const& image, DataType element, void const* data, int box_channels,
                          int box_windows) {
  int const size = size_of(element);
  FourDimensions const all(image.extent, image.stride, size);
  unsigned const steps[] = {1, static_cast<unsigned>(image.step[0]), static_cast<unsigned>(image.step[1]), 1};
  arch::TensorMap map{};
  // Corners are ordered like the dimensions, columns first, although cuda.h documents {D, H, W}; CUTLASS and
  // Triton do the same.
  driver().cuTensorMapEncodeIm2col(&map, type_of(size), 4, const_cast<void*>(data), all.extents, all.strides,
                                   image.lower, image.upper, static_cast<unsigned>(box_channels),
                                   static_cast<unsigned>(box_windows), steps, TensorMapInterleave::none,
                                   swizzle_of_row(box_channels * size), TensorMapPromotion::bytes256,
                                   TensorMapFill::zeros);
  return map;
}

arch::TensorMap filter_map(plan::FilterMap const& filter, DataType element, void const* data,
                           int box_neighbours, int box_lines) {
  int const size = size_of(element);
  FourDimensions const all(filter.extent, filter.stride, size);
  unsigned const box[] = {static_cast<unsigned>(box_neighbours), 1, 1, static_cast<unsigned>(box_lines)};
  unsigned const steps[] = {1, 1, 1, 1};
  auto* const first =
      const_cast<std::byte*>(static_cast<std::byte const*>(data) + filter.base * static_cast<Index>(size));
  arch::TensorMap map{};
  driver().cuTensorMapEncodeTiled(&map, type_of(size), 4, first, all.extents, all.strides, box, steps,
                                  TensorMapInterleave::none, swizzle_of_row(box_neighbours * size),
                                  TensorMapPromotion::bytes256, TensorMapFill::zeros);
  return map;
}

}  // namespace cosmati::cuda
