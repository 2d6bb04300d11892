// The kernels of a convolution's plan: those of its program, or for im2col by TMA the main kernel and its
// packing passes.
#include "src/backend/cuda/convolution.h"

#include <utility>

#include "src/backend/cuda/executor.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/backend/cuda/packing.h"
#include "src/backend/cuda/repack.h"
#include "src/backend/cuda/warp_specialized_convolution.h"
#include "src/plan/conv/program.h"
#include "src/plan/conv/tensor_windows.h"
#include "src/plan/gemm/model.h"

namespace cosmati::cuda {

using Problem = ConvolutionProblem;

jit::Source convolution_source(Plan<Problem> const& plan) {
  auto const program = plan::program_of(plan);
  if (!program) return window_product_source(plan);
  return program->products.empty() ? kernel_source(program->kernels[program->main], plan.device.gpu)
                                   : gemm_source(program->products.front());
}

std::vector<jit::Source> convolution_passes(Plan<Problem> const& plan) {
  auto const program = plan::program_of(plan);
  if (!program) return packing_sources(plan);
  std::vector<jit::Source> sources;
  for (std::size_t i = 0; i < program->kernels.size(); ++i)
    if (i != program->main || !program->products.empty())
      sources.push_back(kernel_source(program->kernels[i], plan.device.gpu));
  for (Plan<GemmProblem> const& product : program->products)
    for (jit::Source& source : repack_sources(product)) sources.push_back(std::move(source));
  return sources;
}

int convolution_shared_bytes(Plan<Problem> const& plan) {
  if (auto const program = plan::program_of(plan)) {
    if (program->products.empty()) return static_cast<int>(program->kernels[program->main].shared_bytes);
    Plan<GemmProblem> const& product = program->products.front();
    return plan::shared_storage_bytes(product.recipe, plan::canonical(product.problem));
  }
  return plan::shared_storage_bytes(
      plan.recipe.product,
      plan::window_products(plan.problem, plan.device.gpu, plan.recipe.packing).parts.front().product);
}

}  // namespace cosmati::cuda
