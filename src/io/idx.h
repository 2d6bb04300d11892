// IDX files, in which MNIST and its relatives come (http://yann.lecun.com/exdb/mnist/): 00 00 type rank,
// big-endian 32-bit extents, then the elements in C order.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "cosmati/ops/tensor.h"

namespace cosmati::io {

// The tensor in an IDX file, plain or compressed by gzip (told by its first bytes, not its name). Types 08
// (u8), 09 (s8), 0C (s32), 0D (f32) and 0E (f64) keep their type, 0B (16-bit integers) becomes s32. Memory is
// taken as the data arrives, never because the header promises it. Throws Error(bad_file) on anything else,
// missing data and trailing bytes included.
Tensor read_idx(std::string const& path);
// The same from memory; `name` stands for the path in messages.
Tensor parse_idx(std::span<std::byte const> file, std::string const& name);

}  // namespace cosmati::io
