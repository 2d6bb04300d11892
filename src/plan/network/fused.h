// The kernel of a fused network: how many images and threads a block has, and the kernel's text.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/fused_training.h"
#include "src/program/program.h"

namespace cosmati::plan {

// The kernel counts images, and elements of their rows, in 32 bits.
inline constexpr Index max_fused_batch = Index{1} << 20;

// The kernel of a plan without a refusal.
program::KernelSpec fused_kernel(FusedPlan const& plan);
// The kernel's argument as C++.
std::string fused_traits(FusedNetwork const& network);

// The maximum number of blocks in the grid if each multiprocessor runs `resident` of them.
int fused_blocks(FusedPlan const& plan, int resident);

}  // namespace cosmati::plan
