// Tensor maps of lines of 64 channels.
#include "src/plan/conv/windows/line_boxes.h"

#include <fmt/format.h>

#include "src/plan/conv/launch.h"
#include "src/plan/gemm/program/tensor_maps.h"

namespace cosmati::plan {

std::string line_boxes_violation(char const* name, TensorDescription const& tensor) {
  constexpr int unit = 16;  // bytes
  Index const* const stride = tensor.layout.stride;
  int const size = size_of(tensor.type);
  if (tensor.extent(1) > 1 && stride[1] != 1)
    return fmt::format("{}: its channels are {} elements apart; TMA requires 1 (channels last)", name,
                       stride[1]);
  if (tensor.alignment % unit != 0)
    return fmt::format("{}: aligned to {} bytes; TMA requires {}", name, tensor.alignment, unit);
  for (int const i : {0, 2, 3})
    if (tensor.extent(i) > 1 && (stride[i] <= 0 || stride[i] * size % unit != 0))
      return fmt::format("{}: a stride of {} elements of {}; TMA requires positive multiples of {}", name,
                         stride[i], name_of(tensor.type), unit / size);
  return {};
}

program::TiledTensor line_boxes(TensorDescription const& tensor, void* data, int first, int step, int columns,
                                int rows, int images) {
  int const size = size_of(tensor.type);
  Index const* const stride = tensor.layout.stride;
  Index const across = (tensor.extent(3) - first + step - 1) / step;
  program::TiledTensor boxes{.address = moved(data, first * stride[3], tensor.type),
                             .rank = 4,
                             .element_bytes = size,
                             .extent = {tensor.extent(1), across, tensor.extent(2), tensor.extent(0)},
                             .box = {64, columns, rows, images},
                             .swizzle_bytes = 128};
  boxes.stride[1] = stride_bytes(step * stride[3], across, size);
  boxes.stride[2] = stride_bytes(stride[2], tensor.extent(2), size);
  boxes.stride[3] = stride_bytes(stride[0], tensor.extent(0), size);
  return boxes;
}

program::TiledTensor filter_boxes(TensorDescription const& w, void* data, std::array<int, 4> const& box) {
  int const size = size_of(w.type);
  Index const* const stride = w.layout.stride;
  program::TiledTensor boxes{.address = data,
                             .rank = 4,
                             .element_bytes = size,
                             .extent = {w.extent(1), w.extent(0), w.extent(3), w.extent(2)},
                             .box = {box[0], box[1], box[2], box[3]},
                             .swizzle_bytes = box[0] * size};
  boxes.stride[1] = stride_bytes(stride[0], w.extent(0), size);
  boxes.stride[2] = stride_bytes(stride[3], w.extent(3), size);
  boxes.stride[3] = stride_bytes(stride[2], w.extent(2), size);
  return boxes;
}

}  // namespace cosmati::plan
