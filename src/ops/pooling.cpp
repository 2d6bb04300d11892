// Validation of pooling, and its extents.
#include "cosmati/ops/pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "src/ops/check.h"
#include "src/ops/names.h"

namespace cosmati {
namespace {

constexpr char const* pooling_name = "pooling";

// The windows along one dimension of the image, and the names of their numbers in messages.
struct Side {
  int dimension;
  char const *of_window, *of_stride, *of_dilation, *of_begin, *of_end;
  Index window, stride, pad_begin, pad_end, dilation;
};

std::vector<Side> sides_of(PoolingProblem const& p) {
  std::vector<Side> sides;
  if (p.has_depth())
    sides.push_back({2, "the window's depth", "the stride along the depth", "the dilation along the depth",
                     "the padding at the front", "the padding at the back", p.depth.window, p.depth.stride,
                     p.depth.pad_begin, p.depth.pad_end, p.depth.dilation});
  int const first = p.has_depth() ? 3 : 2;
  sides.push_back({first, "the window's height", "the vertical stride", "the vertical dilation",
                   "the padding at the top", "the padding at the bottom", p.window[0], p.stride[0],
                   p.pad_begin[0], p.pad_end[0], p.dilation[0]});
  sides.push_back({first + 1, "the window's width", "the horizontal stride", "the horizontal dilation",
                   "the padding at the left", "the padding at the right", p.window[1], p.stride[1],
                   p.pad_begin[1], p.pad_end[1], p.dilation[1]});
  return sides;
}

void check_numbers(Side const& side) {
  check_at_least(pooling_name, side.of_window, side.window, 1);
  check_at_least(pooling_name, side.of_stride, side.stride, 1);
  check_at_least(pooling_name, side.of_dilation, side.dilation, 1);
  check_at_least(pooling_name, side.of_begin, side.pad_begin, 0);
  check_at_least(pooling_name, side.of_end, side.pad_end, 0);
}

void check_extent(PoolingProblem const& problem, Side const& side) {
  Index const image = problem.x.extent(side.dimension), given = problem.y.extent(side.dimension);
  auto const extent = [&](bool ceil_mode) {
    return pooling_extent(image, side.window, side.stride, side.pad_begin, side.pad_end, side.dilation,
                          ceil_mode);
  };
  if (given > 0 && (given == extent(false) || given == extent(true))) return;
  std::string const geometry = fmt::format(
      "extent {} of x, {}, with padding {} + {}, a window of {}, dilation {} and stride {}", side.dimension,
      image, side.pad_begin, side.pad_end, side.window, side.dilation, side.stride);
  if (extent(false) == 0 && extent(true) == 0)
    refuse(pooling_name, "the window does not fit into the padded image: " + geometry);
  std::string legal = fmt::format("{}", extent(true));
  if (extent(false) != extent(true))
    legal = extent(false) == 0 ? legal + " (rounded up)"
                               : fmt::format("{}, or {} if rounded up", extent(false), extent(true));
  refuse(pooling_name, fmt::format("y is {}; its extent {} must be {}: {}", to_string(problem.y),
                                   side.dimension, legal, geometry));
}

void check_has_tap(PoolingProblem const& problem, Side const& side, Index window) {
  Index const image = problem.x.extent(side.dimension), dilation = side.dilation;
  Index const start = window * side.stride - side.pad_begin;
  Index const tap = start < 0 ? (-start + dilation - 1) / dilation : 0;  // the first tap inside the image
  if (tap < side.window && start + tap * dilation < image) return;
  refuse(pooling_name,
         fmt::format("window {} along dimension {} has no tap inside the image: extent {}, padding {} + {}, "
                     "window {}, dilation {}, stride {}; only average-with-padding is defined there",
                     window, side.dimension, image, side.pad_begin, side.pad_end, side.window, dilation,
                     side.stride));
}

// A window without elements of the image has no maximum and no mean. Only windows that begin before the
// image, and the last one, can be empty.
void check_taps(PoolingProblem const& problem, Side const& side) {
  Index const windows = problem.y.extent(side.dimension);
  for (Index window = 0; window < windows && window * side.stride < side.pad_begin; ++window)
    check_has_tap(problem, side, window);
  check_has_tap(problem, side, windows - 1);
}

void check_indices(PoolingProblem const& problem) {
  Named const indices{"indices", problem.indices};
  if (problem.mode != PoolingMode::max)
    refuse(pooling_name,
           fmt::format("indices are given, but the mode is {}; only max has indices", name_of(problem.mode)));
  check_same_shape(pooling_name, indices, {"y", problem.y});
  check_type(pooling_name, indices, {DataType::s32, DataType::u8});
  bool const taps = problem.indices.type == DataType::u8;
  Index const limit = taps ? 256 : Index{1} << 31;
  Index count = 1;
  std::string extents;
  for (Side const& side : sides_of(problem)) {
    Index const extent = taps ? side.window : problem.x.extent(side.dimension);
    count = extent > 0 && count > limit / extent ? limit + 1 : count * extent;
    extents += fmt::format("{}{}", extents.empty() ? "" : " x ", extent);
  }
  if (count > limit)
    refuse(pooling_name,
           fmt::format("indices of type {}: {} {} exceed the limit of {}; s32 counts up to 2^31 "
                       "pixels of the image",
                       name_of(problem.indices.type), extents, taps ? "taps" : "pixels", limit));
}

}  // namespace

char const* name_of(PoolingMode mode) {
  constexpr char const* names[pooling_mode_count] = {"max", "average", "average-with-padding"};
  return names[static_cast<int>(mode)];
}

PoolingMode parse_pooling_mode(std::string const& name) {
  return parse_name<PoolingMode>("pooling mode", name, pooling_mode_count, "valid modes");
}

void validate(PoolingProblem const& problem) {
  check_tensors(pooling_name, problem);
  check_rank(pooling_name, {"x", problem.x}, 4, 5);
  check_rank(pooling_name, {"y", problem.y}, problem.x.layout.rank());
  std::vector<Side> const sides = sides_of(problem);
  for (Side const& side : sides) check_numbers(side);
  for (int d = 0; d < 2; ++d)
    if (problem.x.extent(d) != problem.y.extent(d))
      refuse(pooling_name, fmt::format("x is {}, y is {}; their first two extents must be equal",
                                       to_string(problem.x), to_string(problem.y)));
  for (Side const& side : sides) {
    check_extent(problem, side);
    if (problem.mode != PoolingMode::average_with_padding) check_taps(problem, side);
  }
  if (problem.indices.present()) check_indices(problem);
}

Index pooling_extent(Index input, Index window, Index stride, Index pad_begin, Index pad_end, Index dilation,
                     bool ceil_mode) {
  Index const room = input + pad_begin + pad_end - dilation * (window - 1) - 1;
  if (!ceil_mode) return room < 0 ? 0 : room / stride + 1;
  if (room <= -stride) return 0;
  Index const extent = (room + stride - 1) / stride + 1;
  bool const last_starts_in_right_padding = (extent - 1) * stride >= input + pad_begin;
  return std::max<Index>(last_starts_in_right_padding ? extent - 1 : extent, 0);
}

}  // namespace cosmati
