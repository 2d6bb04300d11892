// A convolution, or one of its gradients, as the matrix products that a GPU kernel computes: which indices
// make m, n and k, and how each tensor is walked along them.
#pragma once
#include <vector>

#include "cosmati/conv/arguments.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm_recipe.h"

namespace cosmati::plan {

// One digit of m, n or k: the letter of the index (n, k, p, q of y; n, c, h, w of dx; k, c, r, s of dw; of k
// r, s, c or n, p, q), its extent, and for a class of a strided data gradient h = first + digit * step.
struct ProductDigit {
  char letter = '1';  // of an extent of 1 that stands for nothing
  Index extent = 1, first = 0, step = 1;
};
using ProductIndex = std::array<ProductDigit, 3>;  // the last is the fastest

// An operand along (outer, depth). `data` of its arguments is null; `base` elements are added to the
// tensor's.
struct WindowForm {
  DataType type = DataType::f32;
  WindowArguments arguments;
  Index base = 0;
  OperandAccess access;
  int alignment = 1;  // bytes
  bool windowed = false;
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
  bool swapped = false;  // a is the filter, or in the filter's gradient x
  WindowForm a, b;
  DigitForm d;
  std::vector<DigitForm> operands, stores;
  DataType sum = DataType::f32, evaluation = DataType::f32;
  bool identity = true;
  // The operand with a window: a, unless swapped, but b of a filter gradient.
  bool image_is_a = true;
  WindowForm& image() { return image_is_a ? a : b; }
  WindowForm const& image() const { return image_is_a ? a : b; }
  ProductIndex& image_outer() { return image_is_a ? m : n; }
  ProductIndex const& image_outer() const { return image_is_a ? m : n; }
  // Where the image is written out as a matrix before the product: as it lay; image() is then that matrix.
  WindowForm unrolled;

  static Index extent(ProductIndex const& index) {
    return index[0].extent * index[1].extent * index[2].extent;
  }
  Index rows() const { return extent(m); }
  Index columns() const { return extent(n); }
  Index depth() const { return extent(k); }
  // Of the result's dimension `letter`, group's share included.
  Index position(char letter, Index group, Index at_m, Index at_n) const;
};

// One product, or of a data gradient with strides one for each place of a pixel between the strides: each has
// only the taps that reach it, and multiplies no zero.
enum class DepthOrder { taps_first, as_the_filter_lies };
std::vector<ConvolutionForm> forms_of(ConvolutionProblem const& problem,
                                      DepthOrder order = DepthOrder::taps_first);

// A data gradient whose pixels are all of dx, for kernels that find by themselves which taps reach a pixel:
// of the operands only types and strides along the channels have a meaning.
ConvolutionForm whole_gradient_form(ConvolutionProblem const& problem);

// The part of a form with `count` values from `first` on of the image's outer digit 0 or 1.
ConvolutionForm slice_of(ConvolutionForm form, int digit, Index first, Index count);

// a and b, m and n the other way round.
ConvolutionForm exchanged(ConvolutionForm form);

// All groups as one whose channels are those of the whole result; a and b stay as they are.
ConvolutionForm with_all_channels(ConvolutionForm form);

// The walk of an operand without a window, with digits that are walked as one made one: runs are longer.
void merge_digits(WindowForm& operand, Index outer, Index depth);

// With k's last digit padded so that no step of `block_k` has two values of the others.
ConvolutionForm stepwise(ConvolutionForm form, int block_k);

}  // namespace cosmati::plan
