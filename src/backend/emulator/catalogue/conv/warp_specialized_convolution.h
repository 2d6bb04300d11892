// A convolution by the emulated warp_specialized kernel, whose operands the copy engine brings.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"

namespace cosmati::emulator {

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_window_product(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::emulator
