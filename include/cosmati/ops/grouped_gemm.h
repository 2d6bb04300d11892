// Grouped matrix products: problems of different sizes in one launch.
#pragma once
#include <span>
#include <vector>

#include "cosmati/ops/gemm.h"

namespace cosmati {

// For each member g, d[g] = epilogue(sum over k of a[g](m, k) * b[g](k, n), c[g], ...): matrix products of
// any sizes, as of a mixture of experts. Members have one batch, the same types and the same expression;
// their extents, strides and alignments are their own. A member of no elements does nothing, one without K
// has acc = 0. They write no memory that another one reads or writes.
struct GroupedGemmProblem {
  std::vector<GemmProblem> members;

  struct Arguments {
    // Of each member, in their order: pointers to its matrices and its epilogue's operands, and its scalars.
    // The spans, and what they refer to, are read before run() returns. On cuda nothing is copied from them
    // by the copy engine: they travel as parameters of a kernel that writes them into the workspace, so that
    // run() may be captured in a graph, which then holds the pointers of that call.
    std::span<GemmProblem::Arguments const> members = {};
  };
};

template <>
struct RecipeOf<GroupedGemmProblem> {
  using type = GemmRecipe;  // of the one kernel
};

// Throws Error(bad_request) that names the member.
void validate(GroupedGemmProblem const& problem);
void check_arguments(GroupedGemmProblem const& problem, GroupedGemmProblem::Arguments const& arguments,
                     Backend backend);

}  // namespace cosmati
