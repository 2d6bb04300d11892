// Loads the kernels of a primitive's passes onto the device and launches them.
#include "src/backend/cuda/primitive_executor.h"

#include <algorithm>

#include "src/backend/cuda/executor.h"
#include "src/jit/cache.h"
#include "src/plan/primitive/kernel.h"

namespace cosmati::cuda {

PrimitiveLaunches::PrimitiveLaunches(plan::PrimitiveProgram program, Gpu const& gpu)
    : program_(std::move(program)), ordinal_(gpu.ordinal) {
  std::vector<jit::Source> sources;
  for (plan::PrimitivePass const& pass : program_.passes) {
    kernels_.push_back(plan::kernel_of(pass));
    sources.push_back(kernel_source(kernels_.back(), gpu));
  }
  auto const cubins = jit::kernel_cache().get_all(sources);
  for (std::size_t i = 0; i < cubins.size(); ++i) {
    functions_.push_back(Module(gpu.ordinal, cubins[i].image.data()).function(cubins[i].lowered_name));
    plan::PrimitivePass& pass = program_.passes[i];
    functions_.back().allow_shared_bytes(pass.shared_bytes);
    if (!pass.stays) continue;
    int const cluster = pass.parameters.policy.cluster;
    int const most =
        functions_.back().clusters_at_once(cluster, pass.parameters.policy.threads, pass.shared_bytes);
    pass.blocks = std::min(pass.blocks, static_cast<unsigned>(std::max(1, most) * cluster));
  }
}

void PrimitiveLaunches::enqueue(plan::PrimitiveRun const& run, Stream stream) const {
  if (program_.passes.empty()) return;
  Current const current(ordinal_);
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    plan::PrimitivePass const& pass = program_.passes[i];
    auto const launch = [&](auto const& parameters) {
      functions_[i].launch({pass.blocks, pass.splits, 1}, kernels_[i].threads, kernels_[i].shared_bytes,
                           parameters, stream);
    };
    if (pass.members.empty()) {
      PrimitiveParameters parameters = pass.parameters;
      plan::bind(pass, run, parameters);
      launch(parameters);
    } else {
      PrimitiveGroup group;
      group.common = pass.parameters;
      plan::bind(pass, run, group);
      launch(group);
    }
  }
}

}  // namespace cosmati::cuda
