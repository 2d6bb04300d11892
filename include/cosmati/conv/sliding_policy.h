// Compile-time choices of the kernels that slide windows over an image.
#pragma once
#include "cosmati/conv/direct_tile.h"

namespace cosmati {

// The compile-time constants of a sliding kernel for an axis of its windows: the maximum number of taps, and
// the steps of outputs and taps. taps = 0: none.
struct KnownAxis {
  int taps = 0, output_step = 1, tap_step = 1;
  bool uneven = false;  // some phases have one tap fewer than `taps`, or none
  friend COSMATI_CONSTEXPR bool operator==(KnownAxis const&, KnownAxis const&) = default;
};

// depthwise: a thread computes adjacent outputs along `axis`, which is the rows or, with contiguous channels,
// the columns, for `vector` channels.
struct DepthwisePolicy {
  bool channels_last = false;
  int vector = 1;
  KnownAxis axis = {};
};

// The filter gradient of depthwise: each thread sums `taps` > 0 adjacent taps of a row of the filter.
struct DepthwiseFilterPolicy {
  bool channels_last = false;
  int vector = 1, taps = 1;
  bool swapped = false;  // n of the result is the filter
};

struct DirectTiledPolicy {
  DirectTile tile = {};
  int threads = 64;      // per block
  bool swapped = false;  // m of the result is the filter, n the pixel
  KnownAxis rows = {};   // of a filter's column
};

// wgrad_direct: a thread processes `run` outputs of a row for `filters` filters at a time.
struct WgradDirectPolicy {
  int threads = 128;  // per block
  int run = 1, filters = 1;
  bool swapped = false;  // n of the result is the filter
  int taps = 1;          // per row of the filter
  int output_step = 1, tap_step = 1;
};

}  // namespace cosmati
