// Runs programs with the kernels of the catalogue.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"
#include "src/program/program.h"

namespace cosmati::emulator {

// For ConvolutionProblem, GemmProblem and GroupedGemmProblem. Throws Error(unavailable) if the module is not
// installed.
template <class Problem>
std::unique_ptr<Kernel<Problem>> prepare_program(Plan<Problem> const& plan, program::Program program);

}  // namespace cosmati::emulator
