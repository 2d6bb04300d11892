// The positions of a window's taps (of a filter or a pooling window) along one axis of an image.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati::reference {

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
