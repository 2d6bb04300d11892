// The cache size for which CPU loops are blocked.
#pragma once
#include "cosmati/core/config.h"
#include "cosmati/ops/device.h"

namespace cosmati::cpu {

// Bytes of the second level cache of a core. Where they are not known: as many as those have on which the
// loops were measured.
inline Index second_cache_bytes(Device const& device) {
  return device.l2_bytes > 0 ? Index{device.l2_bytes} : Index{1} << 20;
}

}  // namespace cosmati::cpu
