// Images in files: the order of their axes (nchw, nhwc, chwn), one to three spatial dimensions, windows and
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
// The value of --layout; nchw if it is empty.
TensorFormat format_of(std::string const& layout);
// A generated array (n, c, spatial...) with the layout that a file of this format would have.
TensorDescription made_image(std::vector<Index> const& size, DataType type, TensorFormat format);

// (n, c, w) as (n, c, 1, w); higher ranks stay as they are.
TensorDescription with_two_spatial(TensorDescription const& image);
// A new dense image (n, c, h, w), and the order of its dimensions in a file that has `spatial` (1 to 3) of
// them.
TensorDescription dense_image(DataType type, TensorFormat format, Index n, Index c, Index h, Index w);
std::vector<int> image_file_order(TensorFormat format, int spatial);

// One number per side of an image: depth, rows, columns; images without depth do not use the first.
using SideNumbers = Index[3];
inline constexpr char const* side_lines[] = {" planes", " rows", " columns"};
// The dimension of side `side` in a tensor of an image (rank 4) or volume (rank 5), and the first side that
// such a tensor has.
inline int side_dimension(int side, int rank) { return rank - 3 + side; }
inline int first_side(int rank) { return rank == 5 ? 0 : 1; }
void read_extents(TensorDescription const& image, SideNumbers& extents);
// A new dense tensor (n, c, h, w), or with three spatial dimensions (n, c, d, h, w).
TensorDescription dense_sides(DataType type, TensorFormat format, Index n, Index c,
                              SideNumbers const& extents, int spatial);

// Parses "2,3" for two spatial dimensions, "1,2,3" for three, "3" for all; one spatial dimension takes one
// number.
void read_sides(std::string const& text, std::string const& what, int spatial, Index lowest,
                SideNumbers& values);

// Options of a window that slides over an image.
struct WindowText {
  std::string stride, pad, dilation;
};

// Computes stride, dilation and padding for an image of extent `input`; same-upper and same-lower pad for
// ceil(input / stride) output positions.
struct Window {
  SideNumbers stride = {1, 1, 1};
  SideNumbers dilation = {1, 1, 1};
  SideNumbers pad_begin = {0, 0, 0};
  SideNumbers pad_end = {0, 0, 0};
};
Window read_window(WindowText const& text, int spatial, SideNumbers const& input, SideNumbers const& window,
                   SideNumbers const& default_stride);

template <class Problem>
void copy_window(Window const& window, int spatial, Problem& problem) {
  for (int d = 0; d < 2; ++d) {
    problem.stride[d] = window.stride[1 + d];
    problem.dilation[d] = window.dilation[1 + d];
    problem.pad_begin[d] = window.pad_begin[1 + d];
    problem.pad_end[d] = window.pad_end[1 + d];
  }
  if (spatial < 3) return;
  problem.depth.stride = window.stride[0];
  problem.depth.dilation = window.dilation[0];
  problem.depth.pad_begin = window.pad_begin[0];
  problem.depth.pad_end = window.pad_end[0];
}

}  // namespace cosmati::cli
