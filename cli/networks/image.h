// Images in files: the order of their axes (nchw, nhwc, chwn), one or two spatial dimensions, windows and
// padding.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/tensor.h"

namespace cosmati::cli {

TensorFormat parse_format(std::string const& name,
                          std::string const& what);  // throws Error with the valid names

// Dimension d of the file is dimension order[d] of the tensor (n, c, spatial...).
std::vector<int> file_order(TensorFormat format, int rank);
// A file's array as the tensor (n, c, spatial...).
TensorDescription from_file(TensorDescription const& file, TensorFormat format);

// (n, c, w) as (n, c, 1, w); rank 4 stays as it is.
TensorDescription with_two_spatial(TensorDescription const& image);
// A new dense image (n, c, h, w), and the order of its dimensions in a file that has `spatial` (1 or 2) of
// them.
TensorDescription dense_image(DataType type, TensorFormat format, Index n, Index c, Index h, Index w);
std::vector<int> image_file_order(TensorFormat format, int spatial);

// Parses "2,3" for two spatial dimensions, "3" for both; one spatial dimension takes one number. `values` is
// {rows, columns}.
void read_pair(std::string const& text, std::string const& what, int spatial, Index lowest,
               Index (&values)[2]);

// Options of a window that slides over an image.
struct WindowText {
  std::string stride, pad, dilation;
};

// Computes stride, dilation and padding for an image of extent `input`; same-upper and same-lower pad for
// ceil(input / stride) output positions. `input` and `window` are {rows, columns}.
struct Window {
  Index stride[2] = {1, 1};
  Index dilation[2] = {1, 1};
  Index pad_begin[2] = {0, 0};
  Index pad_end[2] = {0, 0};
};
Window read_window(WindowText const& text, int spatial, Index const (&input)[2], Index const (&window)[2],
                   Index const (&default_stride)[2]);

template <class Problem>
void copy_window(Window const& window, Problem& problem) {
  for (int d = 0; d < 2; ++d) {
    problem.stride[d] = window.stride[d];
    problem.dilation[d] = window.dilation[d];
    problem.pad_begin[d] = window.pad_begin[d];
    problem.pad_end[d] = window.pad_end[d];
  }
}

}  // namespace cosmati::cli
