// What both chwn16 candidates require and how they divide their work.
#pragma once
#include <string>

#include "cosmati/ops/device.h"
#include "cosmati/ops/tensor.h"
#include "src/backend/cpu/chwn/kernels.h"

namespace cosmati::cpu {

std::string violates_isa(Device const& device);

// Each returns what is wrong with the tensor that messages call `name`, and what would be legal; or nothing.
std::string violates_type(char const* name, TensorDescription const& tensor, DataType legal);
std::string violates_chwn16(char const* name, TensorDescription const& tensor);
std::string violates_row_major(char const* name, TensorDescription const& tensor);

// Throws Error(unavailable) if the device has instructions that this processor lacks.
chwn::Kernels const& chwn_kernels(Device const& device);

// Threads that `work` elementary steps deserve, when one that gets less than `least` would be slower than
// none.
int chwn_parts(Index work, Index least, Device const& device);

}  // namespace cosmati::cpu
