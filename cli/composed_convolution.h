// What `cosmati compile` and `explain` say of a convolution's kernel.
#pragma once
#include "cli/task.h"
#include "src/backend/cuda/convolution.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/backend/cuda/repack.h"
#include "src/plan/conv/plain_gemm.h"
#include "src/plan/gemm/model.h"

namespace cosmati::cli {

template <>
struct Composer<ConvolutionProblem> {
  static std::optional<Composition> compose(Plan<ConvolutionProblem> const& plan) {
    if (plan.device.backend != Backend::cuda) return {};
    std::string recipe;
    for (Considered const& entry : plan.considered)
      if (entry.kernel == plan.kernel) recipe = entry.recipe;
    if (plan.recipe.algorithm == ConvolutionAlgorithm::gemm) {
      Plan<GemmProblem> const product = plan::plan_of_product(plan);
      return Composition{cuda::gemm_source(product), cuda::repack_sources(product), plan.kernel, recipe,
                         plan::shared_storage_bytes(product.recipe, plan::canonical(product.problem))};
    }
    return Composition{cuda::convolution_source(plan), cuda::convolution_passes(plan), plan.kernel, recipe,
                       cuda::convolution_shared_bytes(plan)};
  }
};

}  // namespace cosmati::cli
