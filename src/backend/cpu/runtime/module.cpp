// Finds and opens libcosmati_onednn.so beside the program or in ../lib.
#include "src/backend/cpu/runtime/module.h"

#include <dlfcn.h>

#include "src/backend/cpu/runtime/omp_runtime.h"
#include "src/ops/module_file.h"

namespace cosmati::cpu {
namespace {

struct Loaded {
  OnednnModule const* module = nullptr;
  std::string error;
};

Loaded load() {
  Loaded result;
  ModuleFile const file = module_file("libcosmati_onednn.so");
  if (file.path.empty()) {
    result.error = "libcosmati_onednn.so is neither in " + file.folder + " nor in ../lib beside it";
    return result;
  }
  omp_runtime();  // before oneDNN loads it
  void* const handle = dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    result.error = dlerror();
    return result;
  }
  auto const entry = reinterpret_cast<OnednnModule const* (*)()>(dlsym(handle, "cosmati_onednn_module"));
  if (entry == nullptr) {
    result.error = file.path + " has no function cosmati_onednn_module";
    return result;
  }
  OnednnModule const* const module = entry();
  result.error = violates_onednn_version(module->version);
  if (result.error.empty()) result.module = module;
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
