// The planes that a block of local response normalization keeps in shared memory, for the host and the
// kernel.
#pragma once
#include "cosmati/primitive/arguments.h"

namespace cosmati {

// Channels that a block keeps: those that it computes, and those around them.
COSMATI_CONSTEXPR int lrn_channels(PrimitivePolicy const& policy) {
  return policy.unroll * policy.groups + policy.window.columns - 1;
}
// Runs of shared memory that their elements take: the first and the last channel begin and end anywhere in
// their 16 bytes.
COSMATI_CONSTEXPR int lrn_runs(PrimitivePolicy const& policy) {
  return lrn_channels(policy) * policy.step / policy.width + 2;
}
// All runs of shared memory: the barrier of the bulk copy follows the elements.
COSMATI_CONSTEXPR int lrn_shared_runs(PrimitivePolicy const& policy) {
  return lrn_runs(policy) + (policy.bulk ? 1 : 0);
}

}  // namespace cosmati
