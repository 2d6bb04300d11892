// Arrays between .npy files and tensors, with the types that the command line names.
#pragma once
#include <string>

#include "cli/operations/subject.h"

namespace cosmati::cli {

struct LoadedArray {
  Tensor tensor;
  bool scalar = false;  // the file's shape is (), the tensor's (1)
};

// Loads a file's values in the type requested by options, or else in its own, keeping the order of elements.
// u16 and u8 files are bit patterns where --type names bf16, f16, e4m3 or e5m2. Integers that are of no
// number type here, such as int64, become the type asked for; where --type is an integer, those of c and of
// operands become s32, the type of sums. Throws Error(bad_file) naming the first value that does not fit, and
// Error(bad_request) if a type is required but not given.
LoadedArray load_array(std::string const& path, TypeRole role, TypeChoice const& types);

// Writes a tensor at `data` as the port says: C order, dimensions in the file's order.
void save_array(std::string const& path, Port const& port, TensorDescription const& description,
                void const* data);

}  // namespace cosmati::cli
