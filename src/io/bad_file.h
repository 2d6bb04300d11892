// The error message of every reader for a malformed file.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "cosmati/core/shape.h"

namespace cosmati::io {

// Throws Error(bad_file) with "NAME: REASON".
[[noreturn]] void bad_file(std::string const& name, std::string const& reason);

// Returns text from a file for a message: in quotes, control and non-ASCII bytes as \xNN, cut after 60 bytes.
std::string in_quotes(std::string_view text);

// Returns the bytes of `shape` with elements of `element_bytes` bytes; throws bad_file if an extent is
// negative or the product exceeds 2^62, so that neither Shape::size() nor strides of the shape can overflow.
Index checked_bytes(Shape const& shape, int element_bytes, std::string const& name);

}  // namespace cosmati::io
