// The text of a GEMM kernel, and how it is compiled.
#pragma once
#include "src/jit/compile.h"
#include "src/ops/architecture.h"
#include "src/plan/gemm/program/product_kernel.h"

namespace cosmati::cuda {

// For a product whose operands are not matrices in memory. Parts without an epilogue or a destination get
// those of the form.
jit::Source gemm_source(plan::CanonicalGemm const& form, GemmRecipe const& recipe,
                        epilogue::Expression const& expression, Gpu const& gpu, plan::ProductParts parts);

// Keeps the compiler from fusing multiplications and additions of an epilogue in batch-invariant plans, since
// it might do so in one kernel and not in another. Sums of products name their instructions.
inline void keep_roundings(jit::Source& source, bool batch_invariant) {
  if (batch_invariant) source.options.push_back("--fmad=false");
}

}  // namespace cosmati::cuda
