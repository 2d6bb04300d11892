// The epilogue of a result that is computed region by region, while the sums of a region are in the cache of
// the thread that computed them.
#pragma once
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/backend/cpu/pointwise.h"

namespace cosmati::cpu {

// Immutable once its shapes have been added; run() may be called concurrently, each call with its own
// workspace.
class RegionEpilogue {
 public:
  // The arguments describe the whole result; `indices` are the names of its dimensions. `source` is absent
  // unless the expression uses c. The epilogue is evaluated in double or in float.
  RegionEpilogue(Epilogue const& epilogue, std::span<std::string_view const> indices,
                 TensorDescription const& source, TensorDescription const& result, bool in_double);

  // Regions of the shape of `sums` may follow; adding a shape again has no effect.
  void add(TensorDescription const& sums);
  std::size_t workspace_bytes() const;  // per thread

  // Writes the result and the stores of the region of `shape` that begins at `first`. The accumulator is the
  // region's sums; the other pointers are those of the whole tensors.
  void run(Shape const& shape, Shape const& first, PointwiseArguments const& arguments,
           std::byte* workspace) const;

 private:
  Pointwise const* find(Shape const& shape) const;

  Epilogue epilogue_;
  std::vector<std::string_view> indices_;
  TensorDescription source_, result_;
  bool in_double_;
  std::vector<TensorDescription> operands_;  // with the shape of the result
  std::vector<std::pair<Shape, Pointwise>> regions_;
};

}  // namespace cosmati::cpu
