// Compile-time choices of the kernels of winograd.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// The elements of the result that the last kernel stores together, contiguous along n: channels, if n is the
// channel; columns of a tile or single pixels, if n is the pixel.
enum class WinogradRun : unsigned char { channels, columns, pixel };

// `tile`: rows and columns of results of a tile; `taps`: those of a part of the filter.
struct WinogradFilterPolicy {
  int tile = 2, taps = 3;
};

// `channels_last`: lines are tiles and places channels, `channels` per thread, loaded as vectors if
// `together`; otherwise lines are channels and places tiles.
struct WinogradImagePolicy {
  int tile = 2, taps = 3;
  bool channels_last = false;
  int channels = 1;
  bool together = false;
};

struct WinogradResultPolicy {
  int tile = 2, taps = 3;
  WinogradRun run = WinogradRun::pixel;
};

// The tiles of dy in a filter gradient. `channels_last`: lines are tiles and places channels; otherwise lines
// are channels and places tiles.
struct WinogradGradientPolicy {
  int tile = 2;
  bool channels_last = false;
};

struct WinogradTapsPolicy {
  int tile = 2;
  bool swapped = false;  // the output channel is n of the result, otherwise m
};

}  // namespace cosmati
