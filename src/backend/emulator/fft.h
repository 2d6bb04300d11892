// The emulated kernels around the transforms of the algorithm fft.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"

namespace cosmati::emulator {

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_fft(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::emulator
