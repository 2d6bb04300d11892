// The composed kernels around cuFFT's transforms of the algorithm fft.
#pragma once
#include <memory>
#include <vector>

#include "cosmati/ops/convolution.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

// Planes to results, image and filter to planes, then both to factors and sums to planes, or planes
// multiplied; pure.
std::vector<jit::Source> fft_sources(Plan<ConvolutionProblem> const& plan);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_fft(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::cuda
