// Images in files, and windows over them.
#include "cli/networks/image.h"

#include <algorithm>

#include "cli/operations/subject.h"
#include "cli/output/text.h"
#include "src/ops/names.h"

namespace cosmati::cli {

TensorFormat parse_format(std::string const& name, std::string const& what) {
  std::string const format = one_of(name, {"nchw", "nhwc", "chwn"}, what);
  return format == "nchw" ? TensorFormat::nchw : format == "nhwc" ? TensorFormat::nhwc : TensorFormat::chwn;
}

std::vector<int> file_order(TensorFormat format, int rank) {
  if (rank < 2 || format == TensorFormat::nchw) return identity_order(rank);
  std::vector<int> order;
  for (int d = 2; d < rank; ++d) order.push_back(d);
  if (format == TensorFormat::nhwc) {
    order.insert(order.begin(), 0);
    order.push_back(1);
  } else {
    order.insert(order.begin(), 1);
    order.push_back(0);
  }
  return order;
}

TensorDescription from_file(TensorDescription const& file, TensorFormat format) {
  auto const order = file_order(format, file.layout.rank());
  std::vector<int> inverse(order.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    inverse[static_cast<std::size_t>(order[d])] = static_cast<int>(d);
  return reordered(file, inverse);
}

TensorDescription with_two_spatial(TensorDescription const& image) {
  if (image.layout.rank() != 3) return image;
  Layout const& from = image.layout;
  Layout layout;
  layout.shape = Shape(from.extent(0), from.extent(1), 1, from.extent(2));
  Index const row = from.stride[2] * from.extent(2);
  Index const strides[] = {from.stride[0], from.stride[1], row, from.stride[2]};
  std::copy(strides, strides + 4, layout.stride);
  return {image.type, layout};
}

TensorDescription dense_image(DataType type, TensorFormat format, Index n, Index c, Index h, Index w) {
  checked_size({n, c, h, w}, type);
  return describe(type, image_layout(format, n, c, h, w));
}

std::vector<int> image_file_order(TensorFormat format, int spatial) {
  std::vector<int> order = file_order(format, spatial == 3 ? 5 : 4);
  if (spatial == 1) std::erase(order, 2);
  return order;
}

void read_extents(TensorDescription const& image, SideNumbers& extents) {
  int const rank = image.layout.rank();
  for (int side = first_side(rank); side < 3; ++side)
    extents[side] = image.extent(side_dimension(side, rank));
}

TensorDescription dense_sides(DataType type, TensorFormat format, Index n, Index c,
                              SideNumbers const& extents, int spatial) {
  auto const [d, h, w] = extents;
  if (spatial < 3) return dense_image(type, format, n, c, h, w);
  checked_size({n, c, d, h, w}, type);
  Shape const file = format == TensorFormat::nchw   ? Shape(n, c, d, h, w)
                     : format == TensorFormat::nhwc ? Shape(n, d, h, w, c)
                                                    : Shape(c, d, h, w, n);
  return from_file(describe(type, file), format);
}

void read_sides(std::string const& text, std::string const& what, int spatial, Index lowest,
                SideNumbers& values) {
  if (text.empty()) return;
  auto const numbers = parse_indices(text, what);
  for (Index const number : numbers)
    if (number < lowest)
      throw Error(ErrorCode::bad_request, what + ' ' + text + ": " + std::to_string(number) +
                                              " is less than " + std::to_string(lowest));
  auto const sides = static_cast<std::size_t>(spatial);
  if (numbers.size() != 1 && numbers.size() != sides)
    throw Error(ErrorCode::bad_request, what + ' ' + text + " has " + std::to_string(numbers.size()) +
                                            " numbers; an image with " + std::to_string(spatial) +
                                            " spatial dimensions requires " +
                                            (spatial == 1   ? "one"
                                             : spatial == 2 ? "rows,columns, or one value for both"
                                                            : "planes,rows,columns, or one value for all"));
  for (std::size_t i = 0; i < sides; ++i)
    values[3 - sides + i] = numbers.size() == 1 ? numbers.front() : numbers[i];
}

namespace {

// Pads for ceil(input / stride) positions; if the padding is odd, the extra element is at the end (upper) or
// at the beginning (lower).
void same_padding(bool upper, SideNumbers const& input, SideNumbers const& window, Window& result) {
  for (int d = 0; d < 3; ++d) {
    Index const positions = (input[d] + result.stride[d] - 1) / result.stride[d];
    Index const reach = (positions - 1) * result.stride[d] + (window[d] - 1) * result.dilation[d] + 1;
    Index const total = std::max<Index>(reach - input[d], 0);
    result.pad_begin[d] = upper ? total / 2 : total - total / 2;
    result.pad_end[d] = total - result.pad_begin[d];
  }
}

// One number for all sides, one for each, or beginning and end of each; one spatial dimension has two.
void read_padding(std::string const& text, int spatial, Window& result) {
  auto const numbers = parse_indices(text, "--pad");
  std::size_t const count = numbers.size(), sides = static_cast<std::size_t>(spatial);
  for (Index const number : numbers)
    if (number < 0)
      throw Error(ErrorCode::bad_request,
                  "--pad " + text + ": " + std::to_string(number) + " is less than 0");
  if (count != 1 && count != 2 * sides && (count != sides || spatial == 1)) {
    constexpr char const* legal[] = {"one value, or left,right",
                                     "one value, rows,columns, or top,bottom,left,right",
                                     "one value, planes,rows,columns, or front,back,top,bottom,left,right"};
    throw Error(ErrorCode::bad_request, "--pad " + text + " has " + std::to_string(count) +
                                            " numbers; expected " + legal[sides - 1] +
                                            ", or same-upper, same-lower, valid");
  }
  for (std::size_t i = 0; i < sides; ++i) {
    std::size_t const begin = count == 2 * sides ? 2 * i : count == 1 ? 0 : i;
    result.pad_begin[3 - sides + i] = numbers[begin];
    result.pad_end[3 - sides + i] = numbers[count == 2 * sides ? begin + 1 : begin];
  }
}

}  // namespace

Window read_window(WindowText const& text, int spatial, SideNumbers const& input, SideNumbers const& window,
                   SideNumbers const& default_stride) {
  Window result;
  std::copy(default_stride, default_stride + 3, result.stride);
  read_sides(text.stride, "--stride", spatial, 1, result.stride);
  read_sides(text.dilation, "--dilation", spatial, 1, result.dilation);
  int const kind = find_name(text.pad, {"same-upper", "same-lower", "valid"});
  if (kind == 0 || kind == 1)
    same_padding(kind == 0, input, window, result);
  else if (kind < 0 && !text.pad.empty())
    read_padding(text.pad, spatial, result);
  return result;
}

TensorFormat format_of(std::string const& layout) {
  return layout.empty() ? TensorFormat::nchw : parse_format(layout, "--layout");
}

TensorDescription made_image(std::vector<Index> const& size, DataType type, TensorFormat format) {
  auto const order = file_order(format, static_cast<int>(size.size()));
  std::vector<Index> extents;
  for (int const d : order) extents.push_back(size[static_cast<std::size_t>(d)]);
  return dense_shape(type, extents);
}

}  // namespace cosmati::cli
