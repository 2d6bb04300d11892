// The emulator's kernels for groups: their catalogue.
#pragma once
#include "cosmati/gemm/group_arguments.h"
#include "src/backend/emulator/gemm_catalogue.h"
#include "src/backend/emulator/gemm_warp_specialized.h"

namespace cosmati::emulator {

// Parameters of one problem by warp_specialized.
using WarpgroupRecord = GemmParameters<TensorMapOfProblem, TensorMapOfProblem, HostEpilogue::Arguments,
                                       HostDestination::Arguments>;

struct GroupEntry {
  void (*launch)(int blocks, GroupArguments const& group, int host_threads) = nullptr;
};

// Null where there is none: f32 by double_buffered and bf16 by multistage, both along k in whole runs or
// element by element along anything; bf16 by warp_specialized, both along k, or a along m.
GroupEntry find_group(GemmRecipe const& recipe, DataType a, DataType b);

}  // namespace cosmati::emulator
