// Reserves and releases address space.
#include "src/backend/cpu/runtime/address_space.h"

#include <sys/mman.h>
#include <sys/resource.h>

namespace cosmati::cpu {

bool address_space_has(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  ::munmap(memory, bytes);
  return true;
}

}  // namespace cosmati::cpu
