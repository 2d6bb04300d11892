// Grids and matrix arguments of launches.
#include "src/plan/gemm/launch.h"

#include <algorithm>

#include "src/plan/gemm/model.h"

namespace cosmati::plan {

GemmGrid grid_of(GemmRecipe const& recipe, CanonicalGemm const& problem) {
  constexpr Index max_in_z = 65535;
  if (recipe.policy.partition == Partition::stream_k)
    return {static_cast<unsigned>(recipe.stream_blocks), 1, static_cast<unsigned>(problem.batch), true};
  auto const together = static_cast<unsigned>(recipe.policy.matrices);
  return {static_cast<unsigned>(tiles_of(recipe.policy, problem)), static_cast<unsigned>(recipe.splits),
          static_cast<unsigned>(std::min(problem.batch, max_in_z * together)), false, together};
}

ScheduleArguments schedule_of(GemmRecipe const& recipe, std::byte* workspace) {
  ScheduleArguments schedule;
  schedule.splits = recipe.splits;
  schedule.streamed = recipe.streamed / recipe.policy.cluster();
  schedule.blocks = recipe.stream_blocks;
  schedule.flags = reinterpret_cast<unsigned long long*>(workspace);
  schedule.partials = workspace + recipe.flag_bytes;
  return schedule;
}

MatrixArguments matrix_arguments(MatrixForm const& form, void const* data, bool by_pointers) {
  MatrixArguments matrix;
  void* const writable = const_cast<void*>(data);  // operands are only read, but share the type with results
  if (by_pointers)
    matrix.pointers = static_cast<void* const*>(writable);
  else
    matrix.data = writable;
  matrix.row_stride = form.row_stride;
  matrix.column_stride = form.column_stride;
  matrix.batch_stride = form.batch_stride;
  return matrix;
}

}  // namespace cosmati::plan
