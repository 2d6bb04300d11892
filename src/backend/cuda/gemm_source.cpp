// Composes the source of a kernel whose operands are not matrices in memory.
#include "src/backend/cuda/gemm_source.h"

#include "src/backend/cuda/executor.h"
#include "src/plan/gemm/program/product_kernel.h"

namespace cosmati::cuda {

jit::Source gemm_source(plan::CanonicalGemm const& form, GemmRecipe const& recipe,
                        epilogue::Expression const& expression, Gpu const& gpu, plan::ProductParts parts) {
  if (parts.epilogue.empty()) parts.epilogue = plan::epilogue_text(form);
  if (parts.destination.empty()) parts.destination = plan::destination_text(form, recipe);
  return kernel_source(plan::product_kernel(form, recipe, expression, parts), gpu);
}

}  // namespace cosmati::cuda
