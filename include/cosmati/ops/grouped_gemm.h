// Grouped matrix products: problems of different sizes in one launch.
#pragma once
#include <span>
#include <vector>

#include "cosmati/ops/gemm.h"

namespace cosmati {

// For each member g, d[g] = epilogue(sum over k of a[g](m, k) * b[g](k, n), c[g], ...): matrix products of
// different sizes, as in a mixture of experts. Members have batch 1 and the same types and expression;
// extents, strides and alignments may differ. An empty member does nothing; one with K = 0 has acc = 0. No
// member may write memory that another one reads or writes.
struct GroupedGemmProblem {
  std::vector<GemmProblem> members;

  struct Arguments {
    // For each member, in order: pointers to its matrices and its epilogue's operands, and its scalars. The
    // spans and what they refer to are read before run() returns. On cuda they are passed as parameters of a
    // kernel that writes them into the workspace, so that run() can be captured in a graph, which then holds
    // the pointers of that call.
    std::span<GemmProblem::Arguments const> members = {};
  };
};

template <>
struct RecipeOf<GroupedGemmProblem> {
  using type = GemmRecipe;  // for the single kernel
};

// Throws Error(bad_request) naming the member.
void validate(GroupedGemmProblem const& problem);
void check_arguments(GroupedGemmProblem const& problem, GroupedGemmProblem::Arguments const& arguments,
                     Backend backend);

}  // namespace cosmati
