// The layout of the planes that a block of local response normalization keeps in shared memory, for the host
// and the kernel.
#pragma once
#include "cosmati/primitive/arguments.h"

namespace cosmati {

// Elements between adjacent channels. Each element has the same place within its 16 bytes as in memory, and
// no two channels share 16 bytes, unless they are adjacent in memory.
COSMATI_CONSTEXPR int lrn_pitch(PrimitivePolicy const& policy) {
  if (policy.whole) return policy.step;
  int const width = policy.width, least = policy.window.rows + 2 * (width - 1);
  return least + ((policy.step - least) % width + width) % width;
}
// Channels that a block keeps: those that it computes, and those around them.
COSMATI_CONSTEXPR int lrn_channels(PrimitivePolicy const& policy) {
  return policy.unroll * policy.groups + policy.window.columns - 1;
}
// Elements of shared memory: the first and the last channel begin and end anywhere in their 16 bytes.
COSMATI_CONSTEXPR int lrn_elements(PrimitivePolicy const& policy) {
  return lrn_channels(policy) * lrn_pitch(policy) + 2 * policy.width;
}

}  // namespace cosmati
