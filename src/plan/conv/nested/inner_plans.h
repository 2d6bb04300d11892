// Common parts of the convolutions that run plans of other problems, within their own workspace.
#pragma once
#include <cstddef>
#include <optional>
#include <type_traits>

#include "cosmati/ops/operation.h"
#include "src/plan/buffers.h"

namespace cosmati::plan {

// The options of a plan that uses at most this much of the workspace.
inline PlanOptions options_within(std::size_t workspace_bytes, std::optional<double> max_error = {},
                                  bool batch_invariant = false) {
  PlanOptions options;
  options.batch_invariant = batch_invariant;
  options.max_error = max_error;
  options.max_workspace = workspace_bytes / buffer_alignment * buffer_alignment;
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
