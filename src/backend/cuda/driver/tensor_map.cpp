// Encodes tensor maps with the driver's function, which does not access the device.
#include "src/backend/cuda/driver/tensor_map.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/backend/cuda/driver/driver.h"
#include "src/plan/gemm/program/tensor_maps.h"

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
}  // namespace

arch::TensorMap encode_by_driver(program::TiledTensor const& tensor) {
  std::uint64_t extents[5], strides[5];
  unsigned box[5], steps[5];
  for (int i = 0; i < tensor.rank; ++i) {
    extents[i] = static_cast<std::uint64_t>(tensor.extent[i]);
    if (i > 0) strides[i - 1] = static_cast<std::uint64_t>(tensor.stride[i]);
    box[i] = static_cast<unsigned>(tensor.box[i]);
    steps[i] = 1;
  }
  arch::TensorMap map{};
  driver().cuTensorMapEncodeTiled(&map, type_of(tensor.element_bytes), static_cast<unsigned>(tensor.rank),
                                  tensor.address, extents, strides, box, steps, TensorMapInterleave::none,
                                  swizzle_of_row(tensor.swizzle_bytes), TensorMapPromotion::bytes128,
                                  TensorMapFill::zeros);
  return map;
}

arch::TensorMap encode_by_driver(program::WindowedTensor const& tensor) {
  std::uint64_t extents[4], strides[3];
  for (int i = 0; i < 4; ++i) {
    extents[i] = static_cast<std::uint64_t>(tensor.extent[i]);
    if (i > 0) strides[i - 1] = static_cast<std::uint64_t>(tensor.stride[i]);
  }
  unsigned const steps[] = {1, static_cast<unsigned>(tensor.step[0]), static_cast<unsigned>(tensor.step[1]),
                            1};
  arch::TensorMap map{};
  // Corners are ordered like the dimensions, columns first, although cuda.h documents {D, H, W}; CUTLASS and
  // Triton do the same.
  driver().cuTensorMapEncodeIm2col(&map, type_of(tensor.element_bytes), 4, tensor.address, extents, strides,
                                   tensor.lower, tensor.upper, static_cast<unsigned>(tensor.channels),
                                   static_cast<unsigned>(tensor.windows), steps, TensorMapInterleave::none,
                                   swizzle_of_row(tensor.swizzle_bytes), TensorMapPromotion::bytes128,
                                   TensorMapFill::zeros);
  return map;
}

}  // namespace cosmati::cuda
