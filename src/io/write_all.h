// Complete writes to a descriptor.
#pragma once
#include <cstddef>

namespace cosmati::io {

// Returns false and sets errno if not everything could be written. Exceeding the file-size limit (ulimit -f)
// gives EFBIG, like ENOSPC for a full disk: the signal SIGXFSZ, which would terminate the program, is blocked
// for this thread.
bool write_all(int descriptor, void const* data, std::size_t bytes);
// The same at byte `at` of the file, independent of the descriptor's position; thread-safe.
bool write_all_at(int descriptor, unsigned long long at, void const* data, std::size_t bytes);

}  // namespace cosmati::io
