// Common parts of the convolutions that run plans of other problems, within their own workspace.
#pragma once
#include <cstddef>
#include <optional>
#include <type_traits>

#include "cosmati/ops/operation.h"

namespace cosmati::plan {

// Buffers in the workspace are aligned for every backend.
inline constexpr std::size_t part_alignment = 256;
constexpr std::size_t padded_bytes(std::size_t bytes) {
  return (bytes + part_alignment - 1) / part_alignment * part_alignment;
}

// The options of a plan that uses at most this much of the workspace.
inline PlanOptions options_within(std::size_t workspace_bytes, std::optional<double> max_error = {},
                                  bool batch_invariant = false) {
  PlanOptions options;
  options.batch_invariant = batch_invariant;
  options.max_error = max_error;
  options.max_workspace = workspace_bytes / part_alignment * part_alignment;
  return options;
}

// Null stays null.
template <class Pointer>
Pointer moved(Pointer pointer, Index bytes) {
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, std::byte const, std::byte>;
  return pointer == nullptr ? pointer : static_cast<Byte*>(pointer) + bytes;
}

}  // namespace cosmati::plan
