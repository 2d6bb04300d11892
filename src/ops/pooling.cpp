// Validation of pooling, and its extents.
#include "cosmati/ops/pooling.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/ops/check.h"
#include "src/ops/names.h"

namespace cosmati {
namespace {

constexpr char const* operation = "pooling";

void check_numbers(PoolingProblem const& problem) {
  for (int i = 0; i < 2; ++i) {
    check_at_least(operation, i == 0 ? "the window's height" : "the window's width", problem.window[i], 1);
    check_at_least(operation, i == 0 ? "the vertical stride" : "the horizontal stride", problem.stride[i], 1);
    check_at_least(operation, i == 0 ? "the vertical dilation" : "the horizontal dilation",
                   problem.dilation[i], 1);
    check_at_least(operation, i == 0 ? "the padding at the top" : "the padding at the left",
                   problem.pad_begin[i], 0);
    check_at_least(operation, i == 0 ? "the padding at the bottom" : "the padding at the right",
                   problem.pad_end[i], 0);
  }
}

void check_extent(PoolingProblem const& problem, int i) {
  Index const image = problem.x.extent(2 + i), given = problem.y.extent(2 + i);
  auto const extent = [&](bool ceil_mode) {
    return pooling_extent(image, problem.window[i], problem.stride[i], problem.pad_begin[i],
                          problem.pad_end[i], problem.dilation[i], ceil_mode);
  };
  if (given > 0 && (given == extent(false) || given == extent(true))) return;
  std::string const geometry = fmt::format(
      "extent {} of x, {}, with padding {} + {}, a window of {}, dilation {} and stride {}", 2 + i, image,
      problem.pad_begin[i], problem.pad_end[i], problem.window[i], problem.dilation[i], problem.stride[i]);
  if (extent(false) == 0 && extent(true) == 0)
    refuse(operation, "the window does not fit into the padded image: " + geometry);
  std::string legal = fmt::format("{}", extent(true));
  if (extent(false) != extent(true))
    legal = extent(false) == 0 ? legal + " (rounded up)"
                               : fmt::format("{}, or {} if rounded up", extent(false), extent(true));
  refuse(operation,
         fmt::format("y is {}; its extent {} must be {}: {}", to_string(problem.y), 2 + i, legal, geometry));
}

void check_has_tap(PoolingProblem const& problem, int i, Index window) {
  Index const image = problem.x.extent(2 + i), dilation = problem.dilation[i];
  Index const start = window * problem.stride[i] - problem.pad_begin[i];
  Index const tap = start < 0 ? (-start + dilation - 1) / dilation : 0;  // the first tap inside the image
  if (tap < problem.window[i] && start + tap * dilation < image) return;
  refuse(operation,
         fmt::format("window {} along dimension {} has no tap inside the image: extent {}, padding {} + {}, "
                     "window {}, dilation {}, stride {}; only average-with-padding is defined there",
                     window, 2 + i, image, problem.pad_begin[i], problem.pad_end[i], problem.window[i],
                     dilation, problem.stride[i]));
}

// A window without elements of the image has no maximum and no mean. Only windows that begin before the
// image, and the last one, can be empty.
void check_taps(PoolingProblem const& problem, int i) {
  Index const windows = problem.y.extent(2 + i);
  for (Index window = 0; window < windows && window * problem.stride[i] < problem.pad_begin[i]; ++window)
    check_has_tap(problem, i, window);
  check_has_tap(problem, i, windows - 1);
}

void check_indices(PoolingProblem const& problem) {
  Named const indices{"indices", problem.indices};
  if (problem.mode != PoolingMode::max)
    refuse(operation,
           fmt::format("indices are given, but the mode is {}; only max has indices", name_of(problem.mode)));
  check_same_shape(operation, indices, {"y", problem.y});
  check_type(operation, indices, {DataType::s32, DataType::u8});
  bool const taps = problem.indices.type == DataType::u8;
  Index const limit = taps ? 256 : Index{1} << 31;
  Index const rows = taps ? problem.window[0] : problem.x.extent(2);
  Index const columns = taps ? problem.window[1] : problem.x.extent(3);
  if (rows > 0 && columns > limit / rows)
    refuse(operation,
           fmt::format("indices of type {} count {} of {} x {}; at most {} allowed, s32 counts up to 2^31 "
                       "pixels of the image",
                       name_of(problem.indices.type), taps ? "taps" : "pixels", rows, columns, limit));
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
  check_tensors(operation, problem);
  check_rank(operation, {"x", problem.x}, 4);
  check_rank(operation, {"y", problem.y}, 4);
  check_numbers(problem);
  for (int d = 0; d < 2; ++d)
    if (problem.x.extent(d) != problem.y.extent(d))
      refuse(operation, fmt::format("x is {}, y is {}; their first two extents must be equal",
                                    to_string(problem.x), to_string(problem.y)));
  for (int i = 0; i < 2; ++i) {
    check_extent(problem, i);
    if (problem.mode != PoolingMode::average_with_padding) check_taps(problem, i);
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
