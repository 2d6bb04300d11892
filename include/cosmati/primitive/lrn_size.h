// The planes that a block of local response normalization keeps in shared memory, for the host and the
// kernel.
#pragma once
#include "cosmati/primitive/arguments.h"

namespace cosmati {

// Channels that a block keeps: those that it computes, and those around them.
COSMATI_CONSTEXPR int lrn_channels(PrimitivePolicy const& policy) {
  return policy.unroll * policy.groups + policy.window.columns - 1;
}
// Elements of shared memory: the first and the last channel begin and end anywhere in their 16 bytes.
COSMATI_CONSTEXPR int lrn_elements(PrimitivePolicy const& policy) {
  return lrn_channels(policy) * policy.step + 2 * policy.width;
}

}  // namespace cosmati
