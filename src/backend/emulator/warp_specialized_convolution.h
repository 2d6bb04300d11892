// A convolution by the emulated warp_specialized kernel, whose operands the copy engine brings.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"

namespace cosmati::emulator {

// The catalogue has a kernel for operands of these types.
bool has_window_product(DataType a, DataType b);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_window_product(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::emulator
