// Buffers in the workspace of a plan.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>

#include "cosmati/ops/operation.h"

namespace cosmati::plan {

inline constexpr Index sector_bytes = 32;             // the smallest transfer of GPU memory
inline constexpr std::size_t buffer_alignment = 256;  // bytes, for every backend
constexpr std::size_t padded_bytes(std::size_t bytes) {
  return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

// The bytes of workspace up to which a plan enlarges the slices of its work: what the options permit, but at
// most a quarter of the GPU's memory.
inline std::size_t workspace_limit(PlanOptions const& options, Device const& device) {
  std::size_t const bytes = options.max_workspace;
  if (device.gpu.memory_bytes <= 0) return bytes;
  return std::min(bytes, static_cast<std::size_t>(device.gpu.memory_bytes) / 4);
}

// Empty, or the reason why a plan that needs `bytes` of workspace is refused.
inline std::string workspace_violation(std::size_t bytes, std::size_t limit) {
  if (bytes <= limit) return {};
  return "needs " + std::to_string(bytes) + " bytes of workspace; at most " + std::to_string(limit);
}

}  // namespace cosmati::plan
