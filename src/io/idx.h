// IDX files, the format of MNIST and similar data sets (http://yann.lecun.com/exdb/mnist/): 00 00 type rank,
// big-endian 32-bit extents, then the elements in C order.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "cosmati/ops/tensor.h"

namespace cosmati::io {

// Reads the tensor of an IDX file, uncompressed or gzip (detected by its first bytes, not its name). Types 08
// (u8), 09 (s8), 0C (s32), 0D (f32) and 0E (f64) are preserved, 0B (16-bit integers) becomes s32. Memory is
// allocated as data arrive, not according to the header. Throws Error(bad_file) for anything else, including
// missing and trailing bytes.
Tensor read_idx(std::string const& path);
// The same from memory; messages use `name` in place of the path.
Tensor parse_idx(std::span<std::byte const> file, std::string const& name);

}  // namespace cosmati::io
