// Problems of different sizes as one kernel sees them: what they have in common, and how their tiles are
// counted through.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cosmati/ops/grouped_gemm.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/model.h"

namespace cosmati::plan {

struct GroupForm {
  // Those that have something to compute, all swapped or none, the deepest first: what takes long must not
  // begin last.
  std::vector<CanonicalGemm> problems;
  std::vector<std::size_t> member;  // the number of each in the GroupedGemmProblem
  // What a kernel for all of them is made for: directions and widths that every problem has, and the largest
  // extents. Batch 0: there is nothing to compute.
  CanonicalGemm common;
};

GroupForm group_form(GroupedGemmProblem const& problem);

// Tiles (of clusters, where the policy has those) before each problem, and last of all.
std::vector<Index> first_tiles(GemmPolicy const& policy, GroupForm const& group);

// The total volume of all problems.
Volume volume_of(GroupForm const& group, GemmRecipe const& recipe);

// D of every problem leaves the kernel by the copy engine, and wgmma takes every problem as it lies; or why
// not, with the member's number.
std::string wgmma_violation(GroupForm const& group, Gpu const& gpu);

}  // namespace cosmati::plan
