// Opening cuDNN.
#include "cli/cudnn.h"

#include <dlfcn.h>

#include <cstdlib>

#include "cli/machine.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli::cudnn {
namespace {

Library open() {
  char const* const chosen = std::getenv("COSMATI_CUDNN");
  std::string const found = find_library({"libcudnn.so.9"});
  // What the linker knows and we do not may be there as well.
  std::string const path = chosen != nullptr ? chosen : found.empty() ? "libcudnn.so.9" : found;
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw Error(ErrorCode::unavailable, std::string("peer cudnn: cuDNN is not here: ") + dlerror());
  Library library;
#define COSMATI_BIND(name, result, parameters)                                   \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, #name)); \
  if (library.name == nullptr)                                                   \
    throw Error(ErrorCode::unavailable, "peer cudnn: " + path + " has no function " + #name);
  COSMATI_CUDNN(COSMATI_BIND)
#undef COSMATI_BIND
  return library;
}

}  // namespace

Library const& library() {
  static Library const one = open();
  return one;
}

std::string version() {
  std::size_t const number = library().cudnnGetVersion();  // 91900 is 9.19.0
  return "cuDNN " + std::to_string(number / 10000) + '.' + std::to_string(number / 100 % 100) + '.' +
         std::to_string(number % 100);
}

void check(char const* call, Status status) {
  if (status == Status::success) return;
  throw Error(ErrorCode::system,
              std::string("cuDNN: ") + call + ": " + library().cudnnGetErrorString(status));
}

}  // namespace cosmati::cli::cudnn
