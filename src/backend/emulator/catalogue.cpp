// Finds and opens libcosmati_emulator.so.
#include "src/backend/emulator/catalogue.h"

#include <dlfcn.h>

#include "cosmati/ops/error.h"
#include "src/ops/module_file.h"

namespace cosmati::emulator {
namespace {

struct OpenedCatalogue {
  Catalogue const* catalogue = nullptr;
  std::string failure;
};

OpenedCatalogue open_catalogue() {
  char const* const name = "libcosmati_emulator.so";
  ModuleFile const file = module_file(name);
  if (file.path.empty())
    return {nullptr, std::string("the kernels of --backend emulator are in ") + name +
                         ", which is neither in " + file.folder +
                         " nor in ../lib beside it; build it with `make emulator`, or with " +
                         "`cmake --build FOLDER --target cosmati_emulator` for another build folder"};
  void* const handle = dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const entry = handle == nullptr ? nullptr : dlsym(handle, "cosmati_emulator_catalogue");
  if (entry == nullptr) return {nullptr, std::string("the kernels of --backend emulator: ") + dlerror()};
  return {reinterpret_cast<Catalogue const* (*)()>(entry)(), {}};
}

OpenedCatalogue const& opened_catalogue() {
  static OpenedCatalogue const opened = open_catalogue();
  return opened;
}

}  // namespace

Catalogue const& catalogue() {
  OpenedCatalogue const& opened = opened_catalogue();
  if (opened.catalogue == nullptr) throw Error(ErrorCode::unavailable, opened.failure);
  return *opened.catalogue;
}

std::string const& catalogue_failure() { return opened_catalogue().failure; }

}  // namespace cosmati::emulator
