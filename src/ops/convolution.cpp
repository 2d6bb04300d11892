// Validation of convolutions, and their extents.
#include "cosmati/ops/convolution.h"

#include <fmt/format.h>

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
  if (!problem.has_depth()) return;
  check_at_least(operation, "the stride along the depth", problem.depth.stride, 1);
  check_at_least(operation, "the dilation along the depth", problem.depth.dilation, 1);
  check_at_least(operation, "the padding at the front", problem.depth.pad_begin, 0);
  check_at_least(operation, "the padding at the back", problem.depth.pad_end, 0);
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

// A window along one dimension of the image.
struct Side {
  int dimension;
  char const* filter_extent;  // its name
  Index stride, pad_begin, pad_end, dilation;
};

void check_image(ConvolutionProblem const& problem, Names const& names, Side const& side) {
  int const d = side.dimension;
  Index const image = problem.x.extent(d), taps = problem.w.extent(d);
  check_at_least(names.operation, side.filter_extent, taps, 1);
  Index const expected =
      convolution_extent(image, taps, side.stride, side.pad_begin, side.pad_end, side.dilation);
  std::string const geometry =
      fmt::format("extent {} of {}, {}, with padding {} + {}, {} taps of {}, dilation {} and stride {}", d,
                  names.x, image, side.pad_begin, side.pad_end, taps, names.w, side.dilation, side.stride);
  if (expected == 0)
    refuse(names.operation,
           fmt::format("the filter does not fit into the padded image: {}; it spans {}, but the padded image "
                       "has {}",
                       geometry, side.dilation * (taps - 1) + 1, image + side.pad_begin + side.pad_end));
  if (problem.y.extent(d) != expected)
    refuse(names.operation, fmt::format("{} is {}; its extent {} must be {}: {}", names.y,
                                        to_string(problem.y), d, expected, geometry));
}

void check_images(ConvolutionProblem const& problem, Names const& names) {
  auto const& depth = problem.depth;
  int const first = problem.has_depth() ? 3 : 2;
  if (problem.has_depth())
    check_image(problem, names,
                {2, "the filter's depth", depth.stride, depth.pad_begin, depth.pad_end, depth.dilation});
  for (int i = 0; i < 2; ++i)
    check_image(problem, names,
                {first + i, i == 0 ? "the filter's height" : "the filter's width", problem.stride[i],
                 problem.pad_begin[i], problem.pad_end[i], problem.dilation[i]});
}

}  // namespace

void validate(ConvolutionProblem const& problem) {
  Names const names = names_of(problem.direction);
  check_tensors(names.operation, problem);
  check_rank(names.operation, {names.y, problem.y}, 4, 5);
  bool const has_epilogue =
      problem.direction == ConvolutionDirection::forward || problem.direction == ConvolutionDirection::data;
  if (!has_epilogue && !(problem.epilogue.expression == epilogue::Expression()))
    refuse(names.operation, fmt::format("the epilogue is '{}'; only forward and data support an epilogue",
                                        problem.epilogue.expression.text()));
  if (!has_epilogue && problem.db.present())
    check_shape(names.operation, {"db", problem.db}, {problem.y.extent(1)});
  if (problem.direction == ConvolutionDirection::bias) return;
  check_rank(names.operation, {names.x, problem.x}, problem.y.layout.rank());
  check_rank(names.operation, {names.w, problem.w}, problem.y.layout.rank());
  check_numbers(problem, names.operation);
  check_channels(problem, names);
  check_images(problem, names);
  if (!has_epilogue) return;
  Named const y{names.y, problem.y}, x{names.x, problem.x};
  check_epilogue(names.operation, problem.epilogue, epilogue_indices(problem),
                 problem.direction == ConvolutionDirection::forward ? y : x, false);
}

Index convolution_extent(Index input, Index filter, Index stride, Index pad_begin, Index pad_end,
                         Index dilation) {
  Index const room = input + pad_begin + pad_end - dilation * (filter - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace cosmati
