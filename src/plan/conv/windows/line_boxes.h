// Boxes of an image that TMA copies in lines of 64 channels of a pixel, for kernels whose taps are offsets in
// lines (wgrad_taps, group_windows, image_windows).
#pragma once
#include <array>
#include <string>

#include "cosmati/ops/tensor.h"
#include "src/program/program.h"

namespace cosmati::plan {

inline constexpr int max_box = 256;  // elements of a TMA box in each dimension

// The reason why TMA cannot copy such boxes of a tensor, as a sentence that begins with `name`; empty if it
// can.
std::string line_boxes_violation(char const* name, TensorDescription const& tensor);

// Boxes of 64 channels by `columns`, `rows` and `images` of a 16-bit tensor; of its columns, every `step`-th
// starting at `first`.
program::TiledTensor line_boxes(TensorDescription const& tensor, void* data, int first, int step, int columns,
                                int rows, int images);

// Boxes of a 16-bit filter in lines of contiguous channels: dimension 1 of `w`, then 0, columns and rows of
// taps.
program::TiledTensor filter_boxes(TensorDescription const& w, void* data, std::array<int, 4> const& box);

}  // namespace cosmati::plan
