// The emulator's kernels for groups: their catalogue.
#pragma once
#include "cosmati/gemm/group_arguments.h"
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"
#include "src/backend/emulator/catalogue/gemm/gemm_warp_specialized.h"

namespace cosmati::emulator {

// Parameters of one problem by warp_specialized.
using WarpgroupRecord = GemmParameters<TensorMapOfProblem, TensorMapOfProblem, HostEpilogue::Arguments,
                                       HostDestination::Arguments>;

inline bool is_specialized(GemmRecipe const& recipe) {
  return recipe.policy.main_loop == MainLoop::warp_specialized;
}
inline std::size_t group_record_bytes(GemmRecipe const& recipe) {
  return is_specialized(recipe) ? sizeof(WarpgroupRecord) : sizeof(HostGemmParameters);
}

struct GroupEntry {
  void (*launch)(int blocks, GroupArguments const& group, int host_threads) = nullptr;
};

// Null where there is none: f32 by double_buffered and bf16 by multistage, both along k in whole runs or
// element by element along anything; bf16 by warp_specialized, both along k, or a along m.
GroupEntry find_group(GemmRecipe const& recipe, DataType a, DataType b);

}  // namespace cosmati::emulator
