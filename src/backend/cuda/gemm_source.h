// The text of a GEMM kernel: our headers, the epilogue as a function, and one name expression.
#pragma once
#include "cosmati/ops/grouped_gemm.h"
#include "src/jit/compile.h"
#include "src/ops/architecture.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::cuda {

// What the run-time compiler gets for this plan; pure.
jit::Source gemm_source(Plan<GemmProblem> const& plan);
jit::Source gemm_source(Plan<GroupedGemmProblem> const& plan);

// For a product whose operands are not matrices in memory: the types of their sources, and the size of the
// kernel's parameters. `header` includes their definitions.
struct OperandTexts {
  std::string a, b;
  std::size_t parameter_bytes;
  std::string epilogue = {}, destination = {};  // empty: as the form has them
  std::string walk =
      {};  // the second parameter of warp_specialized_kernel, if it is another than the first's
};
jit::Source gemm_source(plan::CanonicalGemm const& form, GemmRecipe const& recipe,
                        epilogue::Expression const& expression, Gpu const& gpu, char const* header,
                        OperandTexts const& operands);

// Keeps the compiler from fusing multiplications and additions of an epilogue in batch-invariant plans, since
// it might do so in one kernel and not in another. Sums of products name their instructions.
inline void keep_roundings(jit::Source& source, bool batch_invariant) {
  if (batch_invariant) source.options.push_back("--fmad=false");
}

}  // namespace cosmati::cuda
