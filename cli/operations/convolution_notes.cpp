// Label and operation count of a convolution.
#include "cli/operations/convolution_notes.h"

namespace cosmati::cli {
namespace {

std::string geometry_text(ConvolutionProblem const& problem) {
  auto const number = [](Index value) { return std::to_string(value); };
  bool const deep = problem.has_depth();
  auto const& depth = problem.depth;
  auto const extents = [&](TensorDescription const& tensor) {
    std::string text;
    for (int d = 2; d < tensor.layout.rank(); ++d) text += (d == 2 ? "" : "x") + number(tensor.extent(d));
    return text;
  };
  auto const with_depth = [&](Index value) { return deep ? number(value) + ',' : ""; };
  std::string text = " c" + number(problem.x.extent(1)) + ' ' + extents(problem.x) + " k" +
                     number(problem.y.extent(1)) + ' ' + extents(problem.w) + " stride " +
                     with_depth(depth.stride) + pair_text(problem.stride[0], problem.stride[1]) + " pad " +
                     (deep ? pair_text(depth.pad_begin, depth.pad_end) + ',' : "") +
                     pair_text(problem.pad_begin[0], problem.pad_end[0]) + ',' +
                     pair_text(problem.pad_begin[1], problem.pad_end[1]);
  if (problem.dilation[0] != 1 || problem.dilation[1] != 1 || depth.dilation != 1)
    text += " dilation " + with_depth(depth.dilation) + pair_text(problem.dilation[0], problem.dilation[1]);
  if (problem.groups != 1) text += " groups " + number(problem.groups);
  return text;
}

// The product of the extents of the spatial dimensions.
Index spatial_size(TensorDescription const& tensor) {
  Index size = 1;
  for (int d = 2; d < tensor.layout.rank(); ++d) size *= tensor.extent(d);
  return size;
}

}  // namespace

std::string pair_text(Index rows, Index columns) {
  return std::to_string(rows) + ',' + std::to_string(columns);
}

Notes convolution_notes(ConvolutionProblem const& problem, std::string const& direction,
                        std::string const& format, std::string const& expression) {
  Notes notes;
  auto const& y = problem.y;
  auto const& w = problem.w;
  Index const positions = y.extent(0) * spatial_size(y);
  notes.label = direction + " n" + std::to_string(y.extent(0));
  notes.terms = positions;
  notes.operations = static_cast<double>(positions) * static_cast<double>(y.extent(1));
  notes.linear = true;
  notes.exact = true;
  if (problem.direction != ConvolutionDirection::bias) {
    notes.label += geometry_text(problem);
    Index const taps = spatial_size(w);
    notes.operations *= 2.0 * static_cast<double>(w.extent(1) * taps);
    if (problem.direction == ConvolutionDirection::forward) notes.terms = w.extent(1) * taps;
    if (problem.direction == ConvolutionDirection::data) notes.terms = w.extent(0) / problem.groups * taps;
  }
  notes.label += ' ' + format;
  if (!expression.empty()) notes.label += ' ' + expression;
  return notes;
}

}  // namespace cosmati::cli
