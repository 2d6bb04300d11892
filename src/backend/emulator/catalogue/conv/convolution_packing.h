// The passes that pack operands, on the emulator.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::emulator {

// The arguments with which the product goes on.
ConvolutionProblem::Arguments pack(ConvolutionProblem const& problem, PackRecipe const& recipe,
                                   ConvolutionProblem::Arguments arguments, std::byte* workspace,
                                   int host_threads);

// Behind the product, with the arguments that pack() had.
void unpack(ConvolutionProblem const& problem, PackRecipe const& recipe,
            ConvolutionProblem::Arguments const& given, std::byte* workspace, int host_threads);

}  // namespace cosmati::emulator
