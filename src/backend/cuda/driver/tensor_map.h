// Tensor maps, which describe a batch of matrices for TMA (sm_90 and later).
#pragma once
#include "cosmati/arch/tensor_copy.h"
#include "src/program/program.h"

namespace cosmati::cuda {

// The calling thread must have a current context. Throws Error if the driver rejects the map.
arch::TensorMap encode_by_driver(program::TiledTensor const& tensor);
arch::TensorMap encode_by_driver(program::WindowedTensor const& tensor);

}  // namespace cosmati::cuda
