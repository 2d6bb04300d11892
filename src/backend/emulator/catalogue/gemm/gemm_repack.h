// The pass over an operand before a warp_specialized kernel, in the emulator.
#pragma once
#include <cstddef>

#include "src/plan/gemm/canonical.h"

namespace cosmati::emulator {

// `data`, or where its `batch` matrices of `outer` by `depth` elements lie in the workspace after the pass.
void const* repack(plan::MatrixForm const& operand, RepackRecipe const& recipe, Index outer, Index depth,
                   Index batch, void const* data, std::byte* workspace, int host_threads);

}  // namespace cosmati::emulator
