// f32 matrix products computed from bf16 or tf32 pieces of their factors
// (docs/decisions/0041-bf16-products.md): a pass writes the pieces of both operands to the workspace, then a
// single product of bf16 or tf32 matrices, whose k is three, six or nine times as long, computes the sum.
#pragma once
#include "cosmati/gemm/repack_arguments.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/program/passes.h"

namespace cosmati::plan {

// The candidates for problems whose ComputeMode permits them. bf16_products uses the faster of the
// tensor-core main loops, tf32_products mma.sync: with wgmma, six products of bf16 are as fast and more
// accurate.
Candidate<GemmProblem> bf16_products_candidate();
Candidate<GemmProblem> tf32_products_candidate();

// Whether a plan of the problem computes it from pieces: tensor cores do not multiply f32.
bool multiplies_pieces(GemmProblem const& problem, GemmRecipe const& recipe);

// Returns the product of the pieces: a and b are K-major in the workspace; c, d and the epilogue are those of
// `problem`.
GemmProblem product_of_pieces(GemmProblem const& problem);

// Returns the expected error of this recipe: rounding of the products plus rounding of their sums.
double pieces_error(GemmProblem const& problem, GemmRecipe const& recipe);

struct PiecesTraits {
  PiecesPolicy policy;
  std::string print() const;
};

// Adds the passes that split a and b of `problem`; the pieces follow its workspace of `bytes` bytes.
struct SplitOperands {
  KernelOperand a, b;
};
SplitOperands split(program::Program& program, GemmProblem const& problem, std::size_t bytes);

}  // namespace cosmati::plan
