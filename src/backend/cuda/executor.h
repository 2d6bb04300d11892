// Runs programs on a GPU: prints their kernels, compiles or finds them in the cache, and launches them.
#pragma once
#include <memory>
#include <vector>

#include "cosmati/ops/convolution.h"
#include "src/jit/compile.h"
#include "src/program/program.h"

namespace cosmati::cuda {

// Returns the source for the run-time compiler; pure.
jit::Source kernel_source(program::KernelSpec const& kernel, Gpu const& gpu);

// The sources of all kernels of the program, that of the main one first.
std::vector<jit::Source> kernel_sources(program::Program const& program, Gpu const& gpu);

// For ConvolutionProblem, GemmProblem and GroupedGemmProblem.
template <class Problem>
std::unique_ptr<Kernel<Problem>> prepare_program(Plan<Problem> const& plan, program::Program program);

}  // namespace cosmati::cuda
