// Winograd's convolution on the emulator: kernels that know their types when they run.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"

namespace cosmati::emulator {

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_winograd(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::emulator
