// Writing to a descriptor, to the end or to an error.
#pragma once
#include <cstddef>

namespace cosmati::io {

// False with errno where not all could be written. A file-size limit (ulimit -f) is EFBIG, as a full disk is
// ENOSPC: the signal SIGXFSZ, which would end the program, is kept from this thread meanwhile.
bool write_all(int descriptor, void const* data, std::size_t bytes);
// The same at byte `at` of the file, whatever the descriptor's position; by several threads at once.
bool write_all_at(int descriptor, unsigned long long at, void const* data, std::size_t bytes);

}  // namespace cosmati::io
