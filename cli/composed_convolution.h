// What `cosmati compile` and `explain` say of a convolution's kernel.
#pragma once
#include "cli/task.h"
#include "src/backend/cuda/convolution.h"

namespace cosmati::cli {

template <>
struct Composer<ConvolutionProblem> {
  static std::optional<Composition> compose(Plan<ConvolutionProblem> const& plan) {
    if (plan.device.backend != Backend::cuda) return {};
    std::string recipe;
    for (Considered const& entry : plan.considered)
      if (entry.kernel == plan.kernel) recipe = entry.recipe;
    return Composition{cuda::convolution_source(plan), cuda::convolution_passes(plan), plan.kernel, recipe,
                       cuda::convolution_shared_bytes(plan)};
  }
};

}  // namespace cosmati::cli
