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

// `text` as in {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, the keys in any order, with
// spaces and line ends after it. Throws Error(bad_file) in the name of `file`.
NpyHeader parse_npy_header(std::string_view text, std::string const& file);

// The dictionary alone.
std::string print_npy_header(TensorDescription const& description);

}  // namespace cosmati::io
