// The tile of a block of the tiled direct convolution.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// rows x columns outputs of an image, or of each of several images, for `filters` filters of one group. Each
// thread computes thread_rows rows of one column for thread_filters of them; threads() is the number for one
// image.
struct DirectTile {
  int rows = 16, columns = 16, filters = 16;
  int thread_rows = 4, thread_filters = 8;
  friend COSMATI_CONSTEXPR bool operator==(DirectTile const&, DirectTile const&) = default;
  COSMATI_CONSTEXPR int threads() const {
    return columns * (rows / thread_rows) * (filters / thread_filters);
  }
};

}  // namespace cosmati
