// Common parts of the convolutions that run plans of other problems, within their own workspace.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/error.h"
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

// Calls make(), which plans other problems within this much of the workspace; returns why it cannot.
template <class Make>
std::string refusal_of_inner(std::size_t workspace_bytes, Make const& make) {
  try {
    make();
    return {};
  } catch (Error const& error) {
    if (error.code() != ErrorCode::bad_request) throw;
    std::string const all = error.what(), first = all.substr(0, all.find(":\n"));
    bool const limited = workspace_bytes < std::numeric_limits<std::size_t>::max() / buffer_alignment;
    return limited ? "within " + std::to_string(workspace_bytes) + " bytes of workspace, " + first : first;
  }
}

// The bytes of a tensor that is stored in the workspace between two plans, after the memory of both, and its
// offset.
inline std::size_t bytes_between(TensorDescription const& tensor) {
  return padded_bytes(static_cast<std::size_t>(tensor.bytes()));
}
inline std::size_t offset_between(std::size_t first_workspace, std::size_t second_workspace) {
  return padded_bytes(std::max(first_workspace, second_workspace));
}

// The options for planning both again when the convolution's plan is prepared.
inline PlanOptions options_beside(TensorDescription const& tensor, Plan<ConvolutionProblem> const& plan) {
  return options_within(plan.workspace_bytes - plan.recipe.bias_bytes - bytes_between(tensor),
                        std::get<SlicesRecipe>(plan.recipe.own).max_error);
}

// Moves a pointer by `bytes`; null stays null.
template <class Pointer>
Pointer moved(Pointer pointer, Index bytes) {
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, std::byte const, std::byte>;
  return pointer == nullptr ? pointer : static_cast<Byte*>(pointer) + bytes;
}

}  // namespace cosmati::plan
