// The positions of a window's taps (of a filter or a pooling window) along one axis of an image.
#pragma once
#include "cosmati/ops/tensor.h"
#include "reference/elements.h"

namespace cosmati::reference {

// A tensor of images (n, c, h, w) as one of volumes (n, c, 1, h, w); a tensor of volumes as it is.
inline TensorDescription as_volume(TensorDescription tensor) {
  Layout& layout = tensor.layout;
  if (layout.rank() != 4) return tensor;
  Layout const image = layout;
  layout.shape = {image.extent(0), image.extent(1), 1, image.extent(2), image.extent(3)};
  Index const strides[] = {image.stride[0], image.stride[1], 0, image.stride[2], image.stride[3]};
  for (int d = 0; d < 5; ++d) layout.stride[d] = strides[d];
  return tensor;
}

// The position (n, c, h, w) of the element (n, c, 0, h, w).
inline Position in_image(Position at) {
  at[2] = at[3], at[3] = at[4];
  return at;
}

struct WindowAxis {
  Index image;    // extent of the image
  Index outputs;  // number of windows
  Index taps;     // extent of the window
  Index stride;
  Index pad;  // padding before the image
  Index dilation;

  // Returns the position in the image of a window's tap; not inside() if it is in the padding.
  Index place(Index window, Index tap) const { return window * stride + tap * dilation - pad; }
  bool inside(Index place) const { return place >= 0 && place < image; }

  // Returns the window whose tap `tap` is at `place`, or -1 if there is none.
  Index window_at(Index place, Index tap) const {
    Index const start = place + pad - tap * dilation;
    return start >= 0 && start % stride == 0 && start / stride < outputs ? start / stride : -1;
  }
};

}  // namespace cosmati::reference
