// Opens libgomp.
#include "src/backend/cpu/runtime/omp_runtime.h"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>

#include "src/backend/cpu/runtime/environment_setting.h"
#include "src/backend/cpu/runtime/waiting.h"

namespace cosmati::cpu {
namespace {

template <class Function>
bool find_entry(void* library, char const* name, Function& entry) {
  entry = reinterpret_cast<Function>(dlsym(library, name));
  return entry != nullptr;
}

struct OpenedRuntime {
  OmpRuntime entries;
  bool complete = false;
};

OpenedRuntime open_runtime() {
  OpenedRuntime opened;
  // libgomp reads its settings when it is loaded. If processors are shared, its threads spin a thousand times
  // (microseconds) before sleeping; by default they would spin for milliseconds. A wait policy set by the
  // user takes precedence.
  std::optional<EnvironmentSetting> spins;
  if (std::getenv("OMP_WAIT_POLICY") == nullptr && processors_are_shared_now())
    spins.emplace("GOMP_SPINCOUNT", "1000");
  void* const library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return opened;
  OmpRuntime& entries = opened.entries;
  opened.complete = find_entry(library, "GOMP_parallel", entries.parallel) &&
                    find_entry(library, "omp_get_thread_num", entries.thread_num) &&
                    find_entry(library, "omp_get_num_threads", entries.num_threads) &&
                    find_entry(library, "omp_get_max_threads", entries.max_threads) &&
                    find_entry(library, "omp_get_thread_limit", entries.thread_limit) &&
                    find_entry(library, "omp_in_parallel", entries.in_parallel) &&
                    find_entry(library, "omp_set_num_threads", entries.set_num_threads);
  find_entry(library, "omp_pause_resource_all", entries.pause_all);
  return opened;
}

}  // namespace

OmpRuntime const* omp_runtime() {
  static OpenedRuntime const opened = open_runtime();
  return opened.complete ? &opened.entries : nullptr;
}

}  // namespace cosmati::cpu
