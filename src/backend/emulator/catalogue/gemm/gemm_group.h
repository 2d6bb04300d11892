// The emulator's kernels for groups: their catalogue.
#pragma once
#include "cosmati/gemm/group_arguments.h"
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"
#include "src/backend/emulator/catalogue/gemm/gemm_warp_specialized.h"
#include "src/plan/emulated/contents.h"

namespace cosmati::emulator {

// Parameters of one problem by warp_specialized.
using WarpgroupRecord = GemmParameters<TensorMapOfProblem, TensorMapOfProblem, HostEpilogue::Arguments,
                                       HostDestination::Arguments>;

inline bool is_specialized(GemmRecipe const& recipe) {
  return recipe.policy.main_loop == MainLoop::warp_specialized;
}
static_assert(sizeof(HostGemmParameters) == group_record_bytes);
static_assert(sizeof(WarpgroupRecord) == group_map_record_bytes);
static_assert(alignof(WarpgroupRecord) == group_record_alignment);

struct GroupEntry {
  void (*launch)(int blocks, GroupArguments const& group, int host_threads) = nullptr;
};

// Null where there is none: f32 by double_buffered and bf16 by multistage, both along k in whole runs or
// element by element along anything; bf16 by warp_specialized, both along k, or a along m.
GroupEntry find_group(GemmRecipe const& recipe, DataType a, DataType b);

}  // namespace cosmati::emulator
