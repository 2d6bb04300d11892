// The kernels of a convolution's plan: those of its program, or for im2col by TMA the main kernel and its
// packing passes.
#include "src/backend/cuda/convolution.h"

#include "src/backend/cuda/executor.h"
#include "src/backend/cuda/packing.h"
#include "src/backend/cuda/warp_specialized_convolution.h"
#include "src/plan/conv/program.h"
#include "src/plan/conv/tensor_windows.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/program/program.h"

namespace cosmati::cuda {

using Problem = ConvolutionProblem;

namespace {

program::Program program_of_first(program::Program const& program) {
  return plan::program_of(program.products.front());
}

}  // namespace

jit::Source convolution_source(Plan<Problem> const& plan) {
  auto const program = plan::program_of(plan);
  if (!program) return window_product_source(plan);
  Gpu const& gpu = plan.device.gpu;
  return kernel_sources(program->products.empty() ? *program : program_of_first(*program), gpu).front();
}

std::vector<jit::Source> convolution_passes(Plan<Problem> const& plan) {
  auto const program = plan::program_of(plan);
  if (!program) return packing_sources(plan);
  Gpu const& gpu = plan.device.gpu;
  std::vector<jit::Source> sources;
  for (std::size_t i = 0; i < program->kernels.size(); ++i)
    if (i != program->main || !program->products.empty())
      sources.push_back(kernel_source(program->kernels[i], gpu));
  for (Plan<GemmProblem> const& product : program->products) {
    std::vector<jit::Source> const own = kernel_sources(plan::program_of(product), gpu);
    sources.insert(sources.end(), own.begin() + 1, own.end());
  }
  return sources;
}

int convolution_shared_bytes(Plan<Problem> const& plan) {
  if (auto program = plan::program_of(plan)) {
    if (!program->products.empty()) program = program_of_first(*program);
    return static_cast<int>(program->kernels[program->main].shared_bytes);
  }
  return plan::shared_storage_bytes(
      plan.recipe.product,
      plan::window_products(plan.problem, plan.device.gpu, plan.recipe.packing).parts.front().product);
}

}  // namespace cosmati::cuda
