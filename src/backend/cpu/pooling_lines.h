// Division of a pooling problem into lines for vectorized loops.
#pragma once
#include <algorithm>

#include "cosmati/ops/pooling.h"

namespace cosmati::cpu {

// The windows along one axis of the image.
struct PoolingAxis {
  Index image, outputs, taps, stride, pad, pad_end, dilation;

  Index place(Index window, Index tap) const { return window * stride + tap * dilation - pad; }
  bool inside(Index at) const { return at >= 0 && at < image; }
  // Returns the window whose tap `tap` is at `at`, or -1.
  Index window_at(Index at, Index tap) const {
    Index const start = at + pad - tap * dilation;
    return start >= 0 && start % stride == 0 && start / stride < outputs ? start / stride : -1;
  }
  // The windows [first, last) whose tap `tap` is inside the image.
  void windows_inside(Index tap, Index& first, Index& last) const {
    Index const shift = tap * dilation - pad;  // place = window * stride + shift
    first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    last = image - 1 < shift ? 0 : std::min(outputs, (image - 1 - shift) / stride + 1);
    first = std::min(first, last);
  }
  // Returns the divisor of an average over a window, along this axis.
  Index divisor(Index window, bool with_padding) const {
    Index count = 0;
    for (Index tap = 0; tap < taps; ++tap) {
      Index const at = place(window, tap);
      count += with_padding ? at < image + pad_end : inside(at);
    }
    return count;
  }
};

// Lines are along the dimension whose elements are contiguous: images (n), channels (c), or columns (w).
struct PoolingLines {
  PoolingAxis rows, columns;
  int along;    // 0, 1 or 3
  int across;   // the other one of n and c if `along` is one of them
  Index count;  // elements of a line of y if along is 0 or 1; its columns if it is 3

  explicit PoolingLines(PoolingProblem const& p)
      : rows(axis(p, 0)), columns(axis(p, 1)), along(3), across(1) {
    Layout const& x = p.x.layout;
    auto const better = [&](int d, int than) {
      return x.extent(d) > 1 && (x.extent(than) == 1 || x.stride[d] < x.stride[than]);
    };
    for (int d : {1, 0})
      if (better(d, along)) along = d;
    across = along == 1 ? 0 : 1;
    count = p.y.extent(along);
  }
  static PoolingAxis axis(PoolingProblem const& p, int i) {
    return {p.x.extent(2 + i), p.y.extent(2 + i), p.window[i],  p.stride[i],
            p.pad_begin[i],    p.pad_end[i],      p.dilation[i]};
  }
};

}  // namespace cosmati::cpu
