// Kernels that run under ThreadSanitizer: each file of this folder registers its own by name.
#pragma once
#include <functional>
#include <map>
#include <string>

namespace cosmati::race {

inline std::map<std::string, std::function<void()>>& kernels() {
  static std::map<std::string, std::function<void()>> kernels;
  return kernels;
}

struct Registered {
  Registered(char const* name, std::function<void()> run) { kernels()[name] = std::move(run); }
};

}  // namespace cosmati::race
