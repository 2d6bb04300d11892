// Repacking kernels by element size, width and direction; data types of equal size share a kernel.
#include "src/backend/cuda/repack.h"

#include <algorithm>

#include "src/backend/cuda/executor.h"
#include "src/jit/cache.h"
#include "src/plan/gemm/repack.h"

namespace cosmati::cuda {
std::vector<jit::Source> repack_sources(Plan<GemmProblem> const& plan) {
  plan::CanonicalGemm const form = plan::canonical(plan.problem, plan.recipe.swapped);
  std::vector<jit::Source> sources;
  auto const add = [&](plan::MatrixForm const& operand, RepackRecipe const& repack) {
    if (repack.bytes > 0)
      sources.push_back(kernel_source(plan::repacking_kernel(operand, repack), plan.device.gpu));
  };
  add(form.a, plan.recipe.repack_a);
  add(form.b, plan.recipe.repack_b);
  return sources;
}

RepackPass::RepackPass(Gpu const& gpu, plan::MatrixForm const& operand, RepackRecipe const& repack,
                       Index outer, Index depth, Index batch)
    : operand_(operand), repack_(repack), outer_(outer), depth_(depth), batch_(batch) {
  if (repack.bytes == 0) return;
  kernel_ = plan::repacking_kernel(operand, repack);
  jit::Cubin const cubin = jit::kernel_cache().get(kernel_source(kernel_, gpu));
  function_ = Module(gpu.ordinal, cubin.image.data()).function(cubin.lowered_name);
}

void const* RepackPass::enqueue(void const* data, std::byte* workspace, Stream stream) const {
  if (repack_.bytes == 0) return data;
  RepackParameters parameters = plan::repack_parameters(operand_, repack_, outer_, depth_, data, workspace);
  Index const tiles = plan::repack_tiles(operand_, repack_, outer_, depth_);
  constexpr Index most_batch = 65535;
  for (Index first = 0; first < batch_; first += most_batch) {
    parameters.first_batch = first;
    auto const matrices = static_cast<unsigned>(std::min(most_batch, batch_ - first));
    function_.launch({static_cast<unsigned>(tiles), 1, matrices}, kernel_.threads, kernel_.shared_bytes,
                     parameters, stream);
  }
  return workspace + repack_.offset;
}

}  // namespace cosmati::cuda
