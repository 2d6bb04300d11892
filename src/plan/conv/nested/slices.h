// Common parts of convolutions that are computed slice by slice: groups of images, or groups of channels.
#pragma once
#include <vector>

#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

// The dimension of an operand of the epilogue that `index` (n, c, k, ...) counts; -1 if there is none.
int dimension_of_operand(ConvolutionProblem const& problem, std::size_t operand, char const* index);

// Restricts the tensor to `count` elements of a dimension, starting at any multiple of `step`. Returns the
// bytes from one multiple to the next; if the dimension is -1, leaves the tensor unchanged and returns 0.
Index cut(TensorDescription& tensor, int dimension, Index step, Index count);

// Bytes from the arguments of one slice to those of the next.
struct SliceSteps {
  Index x = 0, w = 0, y = 0;
  std::vector<Index> operands, stores;
};

// The problem of a slice, and the steps to the next one.
struct SlicedProblem {
  ConvolutionProblem problem;
  SliceSteps steps;
};

// The arguments of a slice, with the arrays of pointers that they refer to.
class SliceArguments {
 public:
  SliceArguments(ConvolutionProblem::Arguments const& all, SliceSteps const& steps, Index slice);
  SliceArguments(SliceArguments const&) = delete;
  SliceArguments& operator=(SliceArguments const&) = delete;

  ConvolutionProblem::Arguments arguments;

 private:
  void const* operands_[max_epilogue_operands];
  void* stores_[max_epilogue_stores];
};

}  // namespace cosmati::plan
