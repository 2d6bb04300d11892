// Finds and opens libcosmati_onednn.so beside the program or in ../lib.
#include "src/backend/cpu/module.h"

#include <dlfcn.h>

#include <filesystem>

#include "src/backend/cpu/omp_runtime.h"

namespace cosmati::cpu {
namespace {

struct Loaded {
  OnednnModule const* module = nullptr;
  std::string error;
};

// The folder of the object (program or library) that this code was linked into.
std::filesystem::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void const*>(&onednn_module), &info) == 0 || info.dli_fname == nullptr)
    return {};
  std::error_code ignored;
  auto const path = std::filesystem::canonical(info.dli_fname, ignored);
  return ignored ? std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path()
                 : path.parent_path();
}

Loaded load() {
  Loaded result;
  auto const folder = own_folder();
  for (auto const& candidate : {folder / "libcosmati_onednn.so", folder / "../lib/libcosmati_onednn.so"}) {
    std::error_code ignored;
    if (!std::filesystem::exists(candidate, ignored)) continue;
    omp_runtime();  // before oneDNN opens it
    void* const handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      result.error = dlerror();
      return result;
    }
    auto const entry = reinterpret_cast<OnednnModule const* (*)()>(dlsym(handle, "cosmati_onednn_module"));
    if (entry == nullptr) {
      result.error = candidate.string() + " has no function cosmati_onednn_module";
      return result;
    }
    OnednnModule const* const module = entry();
    result.error = violates_onednn_version(module->version);
    if (result.error.empty()) result.module = module;
    return result;
  }
  result.error = "libcosmati_onednn.so is neither in " + folder.string() + " nor in ../lib beside it";
  return result;
}

Loaded const& loaded() {
  static Loaded const result = load();
  return result;
}

}  // namespace

std::string violates_onednn_version(std::string const& version) {
  if (version.starts_with("2.6.") || version.starts_with("2.7.")) return {};
  return "libdnnl " + version + " was found; it must be of version 2.6 or 2.7";
}

OnednnModule const* onednn_module() { return loaded().module; }
std::string const& onednn_module_error() { return loaded().error; }

}  // namespace cosmati::cpu
