// Conversion of arrays between .npy files and tensors, with the types from the command line.
#pragma once
#include <string>

#include "cli/operations/subject.h"

namespace cosmati::cli {

struct LoadedArray {
  Tensor tensor;
  bool scalar = false;  // the file's shape is (), the tensor's is (1)
};

// Loads a file's values in the type requested by options, otherwise in the file's own, and keeps the order of
// elements. u16 and u8 files are bit patterns if --type is bf16, f16, e4m3 or e5m2. Integers without a
// corresponding data type, such as int64, take the requested type; if --type is an integer type, c and
// operands become s32, the type of the sums. Throws Error(bad_file) naming the first value that does not fit,
// and Error(bad_request) if a type is required but not specified.
LoadedArray load_array(std::string const& path, TypeRole role, TypeChoice const& types);

// Writes the tensor at `data` in C order, with dimensions in the file's order as the port defines it.
void save_array(std::string const& path, Port const& port, TensorDescription const& description,
                void const* data);

}  // namespace cosmati::cli
