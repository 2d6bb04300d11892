// Arrays between .npy files and tensors, with the types that the command line names.
#pragma once
#include <string>

#include "cli/subject.h"

namespace cosmati::cli {

// The file's values in the type that the options ask for, else in its own; its order of elements is kept.
// u16 and u8 files are bit patterns where --type names bf16, f16, e4m3 or e5m2.
Tensor load_array(std::string const& path, TypeRole role, TypeChoice const& types);

// Writes a tensor at `data` as the port says: C order, dimensions in the file's order.
void save_array(std::string const& path, Port const& port, TensorDescription const& description,
                void const* data);

}  // namespace cosmati::cli
