// The data caches of this processor.
#pragma once
#include <string>

namespace cosmati {

// Bytes: the first and the second of one core, the third of all cores that share it. 0: not known.
struct HostCaches {
  long long l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
};

// From the folder that Linux makes of a core's caches, .../cpu/cpu0/cache: index0/{level,type,size}, index1/
// and so on. What is not there, or is no size, stays 0.
HostCaches read_host_caches(std::string const& folder);

// The caches of this machine, read once.
HostCaches const& host_caches();

}  // namespace cosmati
