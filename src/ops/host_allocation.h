// Host memory for tensors and workspaces.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>

namespace cosmati {

inline constexpr std::align_val_t host_alignment{256};

// Returns null if there is no memory. Sizes beyond the address range are rejected here, since g++ 12's
// operator new rounds them up to 0.
inline void* allocate_aligned(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max())) return nullptr;
  return ::operator new(std::max<std::size_t>(bytes, 1), host_alignment, std::nothrow);
}

inline void free_aligned(void* memory) { ::operator delete(memory, host_alignment); }

}  // namespace cosmati
