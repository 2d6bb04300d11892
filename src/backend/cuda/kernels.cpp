// Loads compiled kernels.
#include "src/backend/cuda/kernels.h"

#include <optional>

namespace cosmati::cuda {
namespace {

Function load(int ordinal, jit::Source const& source, jit::Cubin cubin) {
  if (cubin.from_cache) {
    if (std::optional<Module> const module = Module::if_supported(ordinal, cubin.image.data()))
      return module->function(cubin.lowered_name);
    cubin = jit::kernel_cache().compile_again(source);
  }
  return Module(ordinal, cubin.image.data()).function(cubin.lowered_name);
}

}  // namespace

std::vector<Function> load_kernels(int ordinal, std::span<jit::Source const> sources) {
  std::vector<jit::Cubin> cubins = jit::kernel_cache().get_all(sources);
  std::vector<Function> functions;
  for (std::size_t i = 0; i < cubins.size(); ++i)
    functions.push_back(load(ordinal, sources[i], std::move(cubins[i])));
  return functions;
}

Function load_kernel(int ordinal, jit::Source const& source) {
  return load(ordinal, source, jit::kernel_cache().get(source));
}

}  // namespace cosmati::cuda
