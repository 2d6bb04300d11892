// Finds the modules beside libcosmati.
#include "src/ops/module_file.h"

#include <dlfcn.h>

#include <filesystem>

namespace cosmati {
namespace {

// The folder of the program or library that contains this code.
std::filesystem::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void const*>(&module_file), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  auto const path = std::filesystem::canonical(info.dli_fname, ignored);
  return ignored ? std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path()
                 : path.parent_path();
}

}  // namespace

ModuleFile module_file(std::string const& name) {
  auto const folder = own_folder();
  for (auto const& candidate : {folder / name, folder / "../lib" / name}) {
    std::error_code ignored;
    if (std::filesystem::exists(candidate, ignored)) return {folder.string(), candidate.string()};
  }
  return {folder.string(), {}};
}

}  // namespace cosmati
