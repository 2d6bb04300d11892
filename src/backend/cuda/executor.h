// Runs programs on a GPU: prints their kernels, compiles or finds them in the cache, and launches them.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"
#include "src/jit/compile.h"
#include "src/program/program.h"

namespace cosmati::cuda {

// What the run-time compiler gets; pure.
jit::Source kernel_source(program::KernelSpec const& kernel, Gpu const& gpu);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_program(Plan<ConvolutionProblem> const& plan,
                                                            program::Program program);

}  // namespace cosmati::cuda
