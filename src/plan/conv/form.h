// A convolution or gradient as the matrix products that a GPU kernel computes: the indices that form m, n and
// k, and the strides of each tensor along them.
#pragma once
#include <vector>

#include "cosmati/conv/arguments.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm_recipe.h"

namespace cosmati::plan {

inline bool has_one_tap(ConvolutionProblem const& p) { return p.w.extent(2) * p.w.extent(3) == 1; }

// The stride of a dimension; 0 if its extent is 1, where it is irrelevant.
Index stride_of(TensorDescription const& tensor, int dimension);

// Whether pixels begin at multiples of `bytes` from the tensor's pointer.
bool pixels_begin_at(TensorDescription const& tensor, int bytes);

// One digit of m, n or k: the letter of its index (n, k, p, q of y; n, c, h, w of dx; k, c, r, s of dw; for
// k: r, s, c or n, p, q), its extent, and for a phase of a strided data gradient h = first + digit * step.
struct ProductDigit {
  char letter = '1';  // '1': an extent of 1 without an index
  Index extent = 1, first = 0, step = 1;
};
using ProductIndex = std::array<ProductDigit, 3>;  // the last is the fastest
// Whether only the last digit exists, e.g. a channel.
inline bool has_one_digit(ProductIndex const& index) {
  return index[0].letter == '1' && index[1].letter == '1';
}

// An operand indexed (outer, depth). `data` of its arguments is null; `base` elements are added to the
// tensor's pointer.
struct WindowForm {
  DataType type = DataType::f32;
  WindowArguments arguments;
  Index base = 0;
  OperandAccess access;
  Index lane_stride = 1;  // elements between the loads of adjacent lanes, if these load single elements
  int alignment = 1;      // bytes
  bool windowed = false;  // elements may lie outside the image
};

// The result or an operand of the epilogue.
struct DigitForm {
  DataType type = DataType::f32;
  DigitArguments arguments;
  Index base = 0;
  int width = 1;
  int alignment = 1;  // bytes
  bool by_m = true, by_n = true, present = false;
};

// d(m, n) = epilogue(sum over k of a(m, k) * b(k, n)) for each group.
struct ConvolutionForm {
  ProductIndex m, n, k;
  Index groups = 1;
  bool swapped = false;  // a is the filter or, for the filter gradient, x
  WindowForm a, b;
  DigitForm d;
  std::vector<DigitForm> operands, stores;
  DataType sum = DataType::f32, evaluation = DataType::f32;
  bool identity = true;
  // Which operand has windows: a unless swapped, and b for the filter gradient.
  bool image_is_a = true;
  WindowForm& image() { return image_is_a ? a : b; }
  WindowForm const& image() const { return image_is_a ? a : b; }
  ProductIndex& image_outer() { return image_is_a ? m : n; }
  ProductIndex const& image_outer() const { return image_is_a ? m : n; }
  // If the image is unrolled into a matrix before the product: its original form; image() is then the matrix.
  WindowForm unrolled;

  static Index extent(ProductIndex const& index) {
    return index[0].extent * index[1].extent * index[2].extent;
  }
  Index rows() const { return extent(m); }
  Index columns() const { return extent(n); }
  Index depth() const { return extent(k); }
  // Returns the index along the result's dimension `letter`, including the group's offset.
  Index position(char letter, Index group, Index at_m, Index at_n) const;
};

// One product, or one per phase of a strided data gradient, each with only the taps that reach it, so that no
// zeros are multiplied.
enum class DepthOrder { taps_first, as_the_filter_lies };
std::vector<ConvolutionForm> forms_of(ConvolutionProblem const& problem,
                                      DepthOrder order = DepthOrder::taps_first);

// A data gradient over all pixels of dx, for kernels that determine the taps of a pixel themselves; only
// types and channel strides of the operands are used.
ConvolutionForm whole_gradient_form(ConvolutionProblem const& problem);

// The part of a form with `count` values starting at `first` of the image's outer digit 0 or 1.
ConvolutionForm slice_of(ConvolutionForm form, int digit, Index first, Index count);

// Exchanges a and b, and m and n.
ConvolutionForm exchanged(ConvolutionForm form);

// Combines all groups into one with all channels of the result; a and b are unchanged.
ConvolutionForm with_all_channels(ConvolutionForm form);

// Returns the form with all channels of a forward convolution, or of a data gradient over all pixels of dx.
ConvolutionForm all_channels_form(ConvolutionProblem const& problem);

// If every result and operand has a constant distance between consecutive values of m, it becomes a single
// digit, which needs no divisions. For the types of a composed kernel; its arguments are those of `form`.
ConvolutionForm with_merged_rows(ConvolutionForm form);

// Pads the last digit of k so that each step of `block_k` has constant values of the other digits.
ConvolutionForm stepwise(ConvolutionForm form, int block_k);

}  // namespace cosmati::plan
