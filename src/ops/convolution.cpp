// Validation of convolutions, and their extents.
#include "cosmati/ops/convolution.h"

#include <fmt/format.h>

#include "cosmati/epilogue/parse.h"
#include "src/ops/check.h"

namespace cosmati {
namespace {

// The names of a convolution and its tensors in messages; gradients are dx, dw or dy.
struct Names {
  char const* operation;
  char const* x = "x";
  char const* w = "w";
  char const* y = "dy";
};

Names names_of(ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::forward: return {"convolution forward", "x", "w", "y"};
    case ConvolutionDirection::data: return {"convolution data gradient", "dx", "w", "dy"};
    case ConvolutionDirection::filter: return {"convolution filter gradient", "x", "dw", "dy"};
    case ConvolutionDirection::bias: break;
  }
  return {"convolution bias gradient"};
}

void check_numbers(ConvolutionProblem const& problem, char const* operation) {
  check_at_least(operation, "groups", problem.groups, 1);
  for (int i = 0; i < 2; ++i) {
    check_at_least(operation, i == 0 ? "the vertical stride" : "the horizontal stride", problem.stride[i], 1);
    check_at_least(operation, i == 0 ? "the vertical dilation" : "the horizontal dilation",
                   problem.dilation[i], 1);
    check_at_least(operation, i == 0 ? "the padding at the top" : "the padding at the left",
                   problem.pad_begin[i], 0);
    check_at_least(operation, i == 0 ? "the padding at the bottom" : "the padding at the right",
                   problem.pad_end[i], 0);
  }
}

void check_channels(ConvolutionProblem const& problem, Names const& names) {
  Index const channels = problem.x.extent(1), filters = problem.y.extent(1), groups = problem.groups;
  if (channels % groups != 0 || filters % groups != 0)
    refuse(
        names.operation,
        fmt::format("{} groups divide {} channels of {} and {} of {} unevenly; both must be multiples of {}",
                    groups, channels, names.x, filters, names.y, groups));
  if (problem.w.extent(0) != filters || problem.w.extent(1) != channels / groups)
    refuse(names.operation,
           fmt::format("{} is {}; with {} {} and {} {} in {} groups its first extents must be {} and {}",
                       names.w, to_string(problem.w), names.x, to_string(problem.x), names.y,
                       to_string(problem.y), groups, filters, channels / groups));
  if (problem.x.extent(0) != problem.y.extent(0))
    refuse(names.operation, fmt::format("{} is {}, {} is {}; the number of images, extent 0, must be equal",
                                        names.x, to_string(problem.x), names.y, to_string(problem.y)));
}

void check_image(ConvolutionProblem const& problem, Names const& names, int i) {
  Index const image = problem.x.extent(2 + i), taps = problem.w.extent(2 + i);
  check_at_least(names.operation, i == 0 ? "the filter's height" : "the filter's width", taps, 1);
  Index const expected = convolution_extent(image, taps, problem.stride[i], problem.pad_begin[i],
                                            problem.pad_end[i], problem.dilation[i]);
  std::string const geometry = fmt::format(
      "extent {} of {}, {}, with padding {} + {}, {} taps of {}, dilation {} and stride {}", 2 + i, names.x,
      image, problem.pad_begin[i], problem.pad_end[i], taps, names.w, problem.dilation[i], problem.stride[i]);
  if (expected == 0)
    refuse(names.operation,
           fmt::format("the filter does not fit into the padded image: {}; it spans {}, but the padded image "
                       "has {}",
                       geometry, problem.dilation[i] * (taps - 1) + 1,
                       image + problem.pad_begin[i] + problem.pad_end[i]));
  if (problem.y.extent(2 + i) != expected)
    refuse(names.operation, fmt::format("{} is {}; its extent {} must be {}: {}", names.y,
                                        to_string(problem.y), 2 + i, expected, geometry));
}

}  // namespace

void validate(ConvolutionProblem const& problem) {
  Names const names = names_of(problem.direction);
  check_tensors(names.operation, problem);
  check_rank(names.operation, {names.y, problem.y}, 4);
  bool const has_epilogue =
      problem.direction == ConvolutionDirection::forward || problem.direction == ConvolutionDirection::data;
  if (!has_epilogue && !(problem.epilogue.expression == epilogue::Expression()))
    refuse(names.operation, fmt::format("the epilogue is '{}'; only forward and data take one",
                                        problem.epilogue.expression.text()));
  if (!has_epilogue && problem.db.present())
    check_shape(names.operation, {"db", problem.db}, {problem.y.extent(1)});
  if (problem.direction == ConvolutionDirection::bias) return;
  check_rank(names.operation, {names.x, problem.x}, 4);
  check_rank(names.operation, {names.w, problem.w}, 4);
  check_numbers(problem, names.operation);
  check_channels(problem, names);
  for (int i = 0; i < 2; ++i) check_image(problem, names, i);
  if (!has_epilogue) return;
  Named const y{names.y, problem.y}, x{names.x, problem.x};
  check_epilogue(names.operation, problem.epilogue, epilogue::convolution_indices,
                 problem.direction == ConvolutionDirection::forward ? y : x, false);
}

Index convolution_extent(Index input, Index filter, Index stride, Index pad_begin, Index pad_end,
                         Index dilation) {
  Index const room = input + pad_begin + pad_end - dilation * (filter - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace cosmati
