// The tensor maps of a window product: of the image in im2col mode, and of the filter.
#pragma once
#include <algorithm>

#include "cosmati/tile/tensor_box.h"
#include "src/plan/conv/windows/tma_im2col.h"
#include "src/plan/gemm/parameters.h"
#include "src/plan/gemm/program/tensor_maps.h"

namespace cosmati::plan {

inline program::WindowedTensor windowed_tensor(ImageMap const& image, DataType type, void* data,
                                               TensorBox const& box) {
  int const size = size_of(type);
  program::WindowedTensor tensor{.address = data, .element_bytes = size};
  for (int i = 0; i < 4; ++i) {
    tensor.extent[i] = image.extent[i];
    tensor.stride[i] = stride_bytes(image.stride[i], image.extent[i], size);
  }
  std::copy_n(image.lower, 2, tensor.lower);
  std::copy_n(image.upper, 2, tensor.upper);
  std::copy_n(image.step, 2, tensor.step);
  tensor.channels = box.row;
  tensor.windows = box.slice_rows;
  tensor.swizzle_bytes = swizzle_bytes(box.row * size);
  return tensor;
}

inline program::TiledTensor filter_tensor(FilterMap const& filter, DataType type, void* data,
                                          TensorBox const& box) {
  int const size = size_of(type);
  program::TiledTensor tensor{.address = moved(data, filter.base, type),
                              .rank = 4,
                              .element_bytes = size,
                              .box = {box.row, 1, 1, box.slice_rows},
                              .swizzle_bytes = box.row * size};
  for (int i = 0; i < 4; ++i) {
    tensor.extent[i] = filter.extent[i];
    tensor.stride[i] = stride_bytes(filter.stride[i], filter.extent[i], size);
  }
  return tensor;
}

}  // namespace cosmati::plan
