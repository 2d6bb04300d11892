// The header of a .npy file: a Python dictionary of three keys, parsed strictly.
#pragma once
#include <string>
#include <string_view>

#include "src/io/raw_array.h"

namespace cosmati::io {

struct NpyHeader {
  ElementKind kind = ElementKind::f32;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

// Parses `text` such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, with keys in any order,
// followed by spaces and line ends. Throws Error(bad_file) naming `file`.
NpyHeader parse_npy_header(std::string_view text, std::string const& file);

// Returns only the dictionary.
std::string print_npy_header(TensorDescription const& description);

}  // namespace cosmati::io
