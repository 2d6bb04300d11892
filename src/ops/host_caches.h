// The data caches of this processor.
#pragma once
#include <string>

namespace cosmati {

// Sizes in bytes: L1 and L2 of one core, L3 of all cores that share it. 0 if unknown.
struct HostCaches {
  long long l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
};

// Reads the Linux sysfs folder of a core's caches, .../cpu/cpu0/cache: index0/{level,type,size}, index1/ and
// so on. Missing or malformed sizes remain 0.
HostCaches read_host_caches(std::string const& folder);

// The caches of this machine, read once.
HostCaches const& host_caches();

}  // namespace cosmati
