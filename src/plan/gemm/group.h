// A group of problems as one kernel: their common properties, and the numbering of their tiles.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cosmati/ops/grouped_gemm.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/model.h"

namespace cosmati::plan {

struct GroupForm {
  // The nonempty problems, either all swapped or none. Those with the largest k come first, so that the
  // longest tiles do not start last.
  std::vector<CanonicalGemm> problems;
  std::vector<std::size_t> member;  // index of each in the GroupedGemmProblem
  // The properties for which a kernel for all of them is compiled: majors and widths that every problem
  // supports, and the largest extents. Batch 0: there is nothing to compute.
  CanonicalGemm common;
};

GroupForm group_form(GroupedGemmProblem const& problem);

// Returns the tiles (of clusters, if the policy has them) before each problem, and finally the total.
std::vector<Index> first_tiles(GemmPolicy const& policy, GroupForm const& group);

// The total volume of all problems.
Volume volume_of(GroupForm const& group, GemmRecipe const& recipe);

// The reason, with the member's number, why D of a problem cannot be stored by TMA, or a problem's operands
// cannot be read by wgmma in place; empty if all can.
std::string wgmma_violation(GroupForm const& group, Gpu const& gpu);

}  // namespace cosmati::plan
