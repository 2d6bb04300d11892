// Exchanges the input and the output of a convolution.
#include "src/plan/conv/mirrored.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cosmati::plan {

std::string mirror_violation(ConvolutionProblem const& p) {
  if (p.groups != 1) return fmt::format("{} groups; expected 1", p.groups);
  for (int i : {0, 1}) {
    if (p.stride[i] != 1) return fmt::format("stride {}x{}; expected 1x1", p.stride[0], p.stride[1]);
    Index const reach = (p.w.extent(2 + i) - 1) * p.dilation[i];
    if (Index const pad = std::max(p.pad_begin[i], p.pad_end[i]); pad > reach)
      return fmt::format("padding of {}; at most {}, which the filter reaches", pad, reach);
  }
  return {};
}

ConvolutionProblem mirrored(ConvolutionProblem p) {
  std::swap(p.x, p.y);
  Layout& filter = p.w.layout;
  std::swap(filter.shape[0], filter.shape[1]);
  std::swap(filter.stride[0], filter.stride[1]);
  for (int i : {0, 1}) {
    Index const reach = (p.w.extent(2 + i) - 1) * p.dilation[i];
    filter.stride[2 + i] = -filter.stride[2 + i];
    p.pad_begin[i] = reach - p.pad_begin[i];
    p.pad_end[i] = reach - p.pad_end[i];
  }
  p.db = {};
  return p;
}

Index offset_of_last_tap(TensorDescription const& filter) {
  return (filter.extent(2) - 1) * filter.layout.stride[2] + (filter.extent(3) - 1) * filter.layout.stride[3];
}

}  // namespace cosmati::plan
