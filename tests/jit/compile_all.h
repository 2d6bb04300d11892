// Compiles several sources at once.
#pragma once
#include <span>
#include <vector>

#include "src/jit/compile.h"
#include "src/jit/run_all.h"

namespace cosmati::jit {

// `threads` = 0: one per core. When all are done, throws the error of the first source that failed.
inline std::vector<Cubin> compile_all(std::span<Source const> sources, int threads = 0) {
  std::vector<Cubin> cubins(sources.size());
  run_all(sources.size(), threads, [&](std::size_t index) { cubins[index] = compile(sources[index]); });
  return cubins;
}

}  // namespace cosmati::jit
