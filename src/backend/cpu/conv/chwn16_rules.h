// The common requirements of the chwn16 candidates, and how they divide their work.
#pragma once
#include <string>

#include "cosmati/ops/device.h"
#include "cosmati/ops/tensor.h"
#include "src/backend/cpu/chwn/kernels.h"

namespace cosmati::cpu {

std::string violates_isa(Device const& device);

// Each returns how a tensor violates the requirement, with the valid values; empty if it satisfies it.
// Messages refer to the tensor as `name`.
std::string violates_type(char const* name, TensorDescription const& tensor, DataType legal);
std::string violates_chwn16(char const* name, TensorDescription const& tensor);
std::string violates_row_major(char const* name, TensorDescription const& tensor);

// Throws Error(unavailable) if the device has instructions that this processor lacks.
chwn::Kernels const& chwn_kernels(Device const& device);

// Returns the number of threads for `work` elementary steps; a thread does not pay off below `minimum` steps.
int chwn_parts(Index work, Index minimum, Device const& device);

}  // namespace cosmati::cpu
