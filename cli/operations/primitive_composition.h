// What the run-time compiler makes the kernels of a primitive of.
#pragma once
#include "cli/operations/task.h"
#include "src/plan/primitive/candidate.h"

namespace cosmati::cli {

template <class Problem>
struct PrimitiveComposer {
  static std::optional<Composition> compose(Plan<Problem> const& plan) {
    if (plan.device.backend != Backend::cuda) return {};
    auto const program = plan::program_of(plan);
    if (program.passes.empty()) return {};
    Composition composition{cuda::primitive_source(program.passes[0], plan.device.gpu),
                            {},
                            plan.kernel,
                            plan::to_string(program),
                            program.passes[0].shared_bytes};
    for (std::size_t i = 1; i < program.passes.size(); ++i)
      composition.passes.push_back(cuda::primitive_source(program.passes[i], plan.device.gpu));
    return composition;
  }
};

}  // namespace cosmati::cli
