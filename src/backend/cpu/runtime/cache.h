// The cache size for which CPU loops are blocked.
#pragma once
#include "cosmati/core/config.h"
#include "cosmati/ops/device.h"

namespace cosmati::cpu {

// Returns the bytes of a core's L2 cache; if unknown, those of the machine on which the loops were
// measured.
inline Index second_cache_bytes(Device const& device) {
  return device.l2_bytes > 0 ? Index{device.l2_bytes} : Index{1} << 20;
}

}  // namespace cosmati::cpu
