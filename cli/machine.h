// Properties of this machine besides backends: processor, peer libraries, toolkit, cache.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace cosmati::cli {

std::string processor_model();  // as in /proc/cpuinfo

struct Found {
  std::string name;
  std::string where;  // version, path, or why it is missing
  bool here = false;
};
std::vector<Found> peers();    // libraries that `bench --peer` can time
std::vector<Found> toolkit();  // what the cuda backend requires

// The path of a shared library that can be opened, found without running its initializers in this process;
// empty if there is none.
std::string find_library(std::vector<std::string> const& names);

struct Cache {
  std::string folder;
  long long bytes = 0;
  long long files = 0;
};
Cache kernel_cache();

std::string gpu_driver();  // "CUDA 13.0, 580.159.04"; call only on a machine with a driver

// The commit of the source tree of this build, or the value of COSMATI_COMMIT; "unknown" if neither exists.
std::string commit();
std::string version_text();  // "cosmati 0.1.0, 0123456789ab"
std::string time_now();      // "2026-01-31T23:59:59Z"

}  // namespace cosmati::cli
