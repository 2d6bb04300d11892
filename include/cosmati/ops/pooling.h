// Maximum and average pooling over windows of an image.
#pragma once
#include "cosmati/ops/operation.h"

namespace cosmati {

enum class Direction : unsigned char { forward, backward };
enum class PoolingMode : unsigned char { max, average, average_with_padding };
inline constexpr int pooling_mode_count = 3;

char const* name_of(PoolingMode mode);                    // max, average, average-with-padding
PoolingMode parse_pooling_mode(std::string const& name);  // throws Error(bad_request) listing the valid names

// With h = p*stride + r*dilation - pad_begin (and likewise for w), over the taps (r, s) that lie inside the
// image:
//   max: y[n, c, p, q] = max of x[n, c, h, w]; the first maximum in order of (r, s) wins; NaN is propagated
//   average: the mean of the taps inside the image
//   average_with_padding: the sum divided by the number of taps that lie in the padded image
// backward distributes dy to dx: to the maximum, or evenly to the taps. dx is overwritten, not added to.
// indices (optional, max only): s32: h*W + w of the maximum within its image plane; u8: r*S + s within its
// window. Backward uses the indices if present, otherwise x. In three dimensions, x is (N, C, D, H, W), y is
// (N, C, O, P, Q), and windows have taps (t, r, s) with d = o*depth.stride + t*depth.dilation -
// depth.pad_begin; indices are then (d*H + h)*W + w or (t*R + r)*S + s.
struct PoolingProblem {
  Direction direction = Direction::forward;
  PoolingMode mode = PoolingMode::max;
  TensorDescription x;        // x or dx: (N, C, H, W)
  TensorDescription y;        // y or dy: (N, C, P, Q)
  TensorDescription indices;  // (N, C, P, Q)
  Index window[2] = {2, 2};
  Index stride[2] = {2, 2};
  Index pad_begin[2] = {0, 0};
  Index pad_end[2] = {0, 0};
  Index dilation[2] = {1, 1};
  // The windows along d; used only in three dimensions.
  struct Depth {
    Index window = 1;
    Index stride = 1;
    Index pad_begin = 0, pad_end = 0;  // front, back
    Index dilation = 1;
  } depth = {};

  bool has_depth() const { return y.layout.rank() == 5; }

  struct Arguments {
    void const* x = nullptr;
    void const* dy = nullptr;
    void const* saved_indices = nullptr;
    void* y = nullptr;
    void* indices = nullptr;
    void* dx = nullptr;
  };

  // True if backward needs x.
  bool backward_needs_x() const { return mode == PoolingMode::max && !indices.present(); }

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    if (problem.direction == Direction::forward) {
      visit("x", Role::input, problem.x, &Arguments::x);
      visit("y", Role::output, problem.y, &Arguments::y);
      if (problem.indices.present()) visit("indices", Role::output, problem.indices, &Arguments::indices);
    } else {
      if (problem.backward_needs_x()) visit("x", Role::input, problem.x, &Arguments::x);
      visit("dy", Role::input, problem.y, &Arguments::dy);
      if (problem.indices.present())
        visit("indices", Role::input, problem.indices, &Arguments::saved_indices);
      visit("dx", Role::output, problem.x, &Arguments::dx);
    }
  }
};

// The extents of y are those of pooling_extent, with `ceil` or without. For max and average, every window
// must contain an element of the image. Zero images or channels are valid and compute nothing.
void validate(PoolingProblem const& problem);  // throws Error(bad_request)

// Returns the extent of a pooling output: floor((input + pads - dilation*(window - 1) - 1) / stride) + 1, or
// 0 if the window does not fit. ceil_mode rounds up: it keeps a last window that begins inside the input or
// its left padding but ends beyond the right padding.
Index pooling_extent(Index input, Index window, Index stride, Index pad_begin, Index pad_end, Index dilation,
                     bool ceil_mode);

}  // namespace cosmati
