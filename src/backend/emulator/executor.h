// Runs programs on the kernels of the catalogue.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"
#include "src/program/program.h"

namespace cosmati::emulator {

// Throws Error(unavailable) where the module is not here.
std::unique_ptr<Kernel<ConvolutionProblem>> prepare_program(Plan<ConvolutionProblem> const& plan,
                                                            program::Program program);

}  // namespace cosmati::emulator
