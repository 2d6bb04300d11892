// Decides which filters are copied beforehand, and their new layout.
#include "src/plan/conv/filter/filter_copy.h"

#include <algorithm>

namespace cosmati::plan {

FilterCopy filter_copy(ConvolutionProblem const& problem) {
  FilterCopy copy;
  TensorDescription const& w = problem.w;
  Index const* const stride = w.layout.stride;
  Index const rows = w.extent(2), columns = w.extent(3), taps = rows * columns;
  Index const tap_stride = columns > 1 ? stride[3] : stride[2];
  bool const taps_in_line = rows == 1 || columns == 1 || stride[2] == columns * stride[3];
  if (!taps_in_line || size_of(w.type) > 4 || w.extent(0) == 0) return copy;
  copy.filter.row_stride = stride[problem.direction == ConvolutionDirection::forward ? 0 : 1];
  if (problem.direction == ConvolutionDirection::data && w.extent(1) > 1 && stride[1] != 1) {
    copy.outer = w.extent(1);
    copy.depth = taps;
    copy.batch = w.extent(0);
  } else if (problem.direction == ConvolutionDirection::forward && w.extent(0) > 1 && stride[0] != 1 &&
             taps > 1 && (w.extent(1) == 1 || stride[1] == taps * tap_stride)) {
    copy.outer = w.extent(0);
    copy.depth = w.extent(1) * taps;
    copy.batch = 1;
  } else {
    return copy;
  }
  copy.filter.type = w.type;
  copy.filter.column_stride = tap_stride;
  copy.filter.batch_stride = stride[0];
  copy.filter.alignment = std::max(w.alignment, size_of(w.type));
  copy.filter.present = true;
  copy.repack = repack_of(copy.filter, copy.outer, copy.depth, copy.batch, Along::mn);
  return copy;
}

RepackRecipe const& filter_repack(GemmRecipe const& product) {
  return product.swapped ? product.repack_a : product.repack_b;
}

ConvolutionProblem with_filter_copied(ConvolutionProblem problem, RepackRecipe const& repack) {
  if (repack.bytes == 0) return problem;
  TensorDescription& w = problem.w;
  bool const forward = problem.direction == ConvolutionDirection::forward;
  w.alignment = 256;
  w.layout.stride[0] = forward ? 1 : repack.matrix_pitch;
  w.layout.stride[1] = forward ? w.extent(2) * w.extent(3) * repack.pitch : 1;
  w.layout.stride[2] = w.extent(3) * repack.pitch;
  w.layout.stride[3] = repack.pitch;
  return problem;
}

}  // namespace cosmati::plan
