// Loads compiled kernels; a kernel that an operation already has is not loaded again.
#include "src/backend/cuda/kernels.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "src/jit/entry.h"

namespace cosmati::cuda {
namespace {

// The kernels that are loaded now, by device and key of the source.
class LoadedKernels {
 public:
  std::optional<Function> find(int ordinal, std::string const& key) {
    std::lock_guard const lock(mutex_);
    auto const at = kernels_.find({ordinal, key});
    return at == kernels_.end() ? std::nullopt : at->second.get();
  }
  void add(int ordinal, std::string key, Function const& function) {
    std::lock_guard const lock(mutex_);
    std::erase_if(kernels_, [](auto const& entry) { return entry.second.expired(); });
    kernels_.insert_or_assign({ordinal, std::move(key)}, FunctionReference(function));
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, std::string>, FunctionReference> kernels_;
};

LoadedKernels& loaded_kernels() {
  static LoadedKernels loaded;
  return loaded;
}

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
  std::vector<Function> functions(sources.size());
  std::vector<std::size_t> missing;
  std::vector<jit::Source> to_load;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (auto known = loaded_kernels().find(ordinal, jit::key_of(sources[i]))) {
      functions[i] = std::move(*known);
    } else {
      missing.push_back(i);
      to_load.push_back(sources[i]);
    }
  std::vector<jit::Cubin> cubins = jit::kernel_cache().get_all(to_load);
  for (std::size_t i = 0; i < cubins.size(); ++i) {
    Function& function = functions[missing[i]];
    function = load(ordinal, to_load[i], std::move(cubins[i]));
    loaded_kernels().add(ordinal, jit::key_of(to_load[i]), function);
  }
  return functions;
}

Function load_kernel(int ordinal, jit::Source const& source) {
  return load_kernels(ordinal, std::span(&source, 1)).front();
}

}  // namespace cosmati::cuda
