// Launch parameters of kernels that compute a convolution as a matrix product. An index m, n or k of the
// product has up to three digits: (image, row, column) for pixels, (r, s, channel) for taps and channels, or
// a single digit.
#pragma once
#include "cosmati/core/divisor.h"
#include "cosmati/gemm/arguments.h"

namespace cosmati {

struct Digits {
  int first, middle, last;
};

// index = (first * middle.divisor + middle) * last.divisor + last
struct DigitExtents {
  Divisor middle, last;
  COSMATI_CONSTEXPR Digits digits(int index) const {
    int const upper = last.quotient(index), first = middle.quotient(upper);
    return {first, upper - first * middle.divisor, index - upper * last.divisor};
  }
};

// The effect of incrementing a digit: the offset in elements, and the movement down and right in the image.
struct IndexStride {
  Index stride = 0;
  int down = 0, right = 0;
};

struct IndexStrides {
  DigitExtents extents;
  IndexStride first, middle, last;

  COSMATI_CONSTEXPR Index offset(Digits const& at) const {
    return at.first * first.stride + at.middle * middle.stride + at.last * last.stride;
  }
  COSMATI_CONSTEXPR int down(Digits const& at) const {
    return at.first * first.down + at.middle * middle.down + at.last * last.down;
  }
  COSMATI_CONSTEXPR int right(Digits const& at) const {
    return at.first * first.right + at.middle * middle.right + at.last * last.right;
  }
};

// An operand, indexed (outer, depth), where outer is m or n and depth is k. An element exists if its position
// in the image, top + down of both indices and left + right, is inside height x width.
struct WindowArguments {
  void* data = nullptr;    // the element at indices (0, 0), which may precede the tensor; read only
  Index batch_stride = 0;  // elements between groups
  IndexStrides outer, depth;
  int top = 0, left = 0, height = 1, width = 1;
  int depth_extent = 0;  // valid extent of the depth's last digit, which may be padded to full steps
};

// The result, or an epilogue operand of its shape: element (m, n) of group g is at data[g * batch_stride +
// row offset of m + column offset of n].
struct DigitArguments {
  void* data = nullptr;
  Index batch_stride = 0;
  DigitExtents row_extents, column_extents;
  Index row_stride[3] = {}, column_stride[3] = {};
};

inline constexpr int max_convolution_operands = 16, max_convolution_stores = 4;
using FewConvolutionArguments = EpilogueArguments<few_kernel_operands, few_kernel_stores, DigitArguments>;
using ManyConvolutionArguments =
    EpilogueArguments<max_convolution_operands, max_convolution_stores, DigitArguments>;

template <class Epilogue>
using ConvolutionParameters = GemmParameters<WindowArguments, WindowArguments, Epilogue, DigitArguments>;
static_assert(sizeof(ConvolutionParameters<ManyConvolutionArguments>) <= 4096,
              "kernel parameters are limited to 4096 bytes");

}  // namespace cosmati
