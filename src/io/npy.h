// NumPy's .npy files, versions 1 to 3
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "src/io/raw_array.h"

namespace cosmati::io {

// Reads the array of a .npy file: bool, i1 to i8, u1 to u8, f2, f4, f8 in either byte order, up to six
// dimensions; a Fortran-ordered array has column-major strides. The file is mapped and not copied. Throws
// Error(bad_file) unless the header conforms to the format and the data have exactly the size that it
// specifies.
RawArray read_npy(std::string const& path);
// The same from memory, which must outlive the result; messages use `name` in place of the path.
RawArray parse_npy(std::span<std::byte const> file, std::string const& name);

// Writes version 1.0, C order for any strides; bf16 as <u2, e4m3 and e5m2 as |u1, tf32 as <f4.
void write_npy(std::string const& path, TensorDescription const& description, void const* data);
void write_npy(std::string const& path, Tensor const& tensor);
std::string npy_bytes(TensorDescription const& description, void const* data);
// Returns the bytes before the data.
std::string npy_prologue(TensorDescription const& description);
std::string npy_bytes(Tensor const& tensor);

}  // namespace cosmati::io
