// Loads a GPU peer library.
#include "cli/bench/peers/peer_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "cli/machine.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {

PeerLibrary::PeerLibrary(std::string const& peer, std::string const& title, char const* variable,
                         std::vector<std::string> const& names)
    : peer_(peer) {
  char const* const chosen = std::getenv(variable);
  std::string const found = find_library(names);
  // The dynamic linker may find a library in folders that we do not search.
  path_ = chosen != nullptr ? chosen : found.empty() ? names.front() : found;
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr)
    throw Error(ErrorCode::unavailable, "peer " + peer + ": " + title + " is not available: " + dlerror());
}

void* PeerLibrary::find(char const* name) const {
  void* const function = dlsym(handle_, name);
  if (function == nullptr)
    throw Error(ErrorCode::unavailable, "peer " + peer_ + ": " + path_ + " has no function " + name);
  return function;
}

std::string peer_version(std::string const& title, std::size_t number) {
  return title + ' ' + std::to_string(number / 10000) + '.' + std::to_string(number / 100 % 100) + '.' +
         std::to_string(number % 100);
}

}  // namespace cosmati::cli
