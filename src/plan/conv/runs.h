// Dimensions of a tensor merged into one index with one stride.
#pragma once
#include <optional>

#include "cosmati/ops/tensor.h"

namespace cosmati::plan {

struct Run {
  Index extent = 1, stride = 0;
};

// Merges two adjacent dimensions; empty if there is no common stride.
inline std::optional<Run> joined(Run const& outer, Run const& inner) {
  if (outer.extent == 1) return inner;
  if (inner.extent == 1) return outer;
  if (outer.stride != inner.stride * inner.extent) return {};
  return Run{outer.extent * inner.extent, inner.stride};
}
inline std::optional<Run> joined(Run const& outer, std::optional<Run> const& inner) {
  return inner ? joined(outer, *inner) : std::nullopt;
}

inline Run run_of(TensorDescription const& tensor, int dimension) {
  return {tensor.extent(dimension), tensor.layout.stride[dimension]};
}

inline TensorDescription matrix(TensorDescription const& tensor, Run const& batch, Run const& rows,
                                Run const& columns) {
  TensorDescription result = tensor;
  result.layout.shape = {batch.extent, rows.extent, columns.extent};
  Run const* const runs[] = {&batch, &rows, &columns};
  for (int d = 0; d < 3; ++d) result.layout.stride[d] = runs[d]->stride;
  return result;
}

}  // namespace cosmati::plan
