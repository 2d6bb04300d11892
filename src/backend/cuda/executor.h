// Runs programs on a GPU: prints their kernels, compiles or finds them in the cache, and launches them.
#pragma once
#include <memory>
#include <vector>

#include "src/jit/compile.h"
#include "src/program/execute.h"

namespace cosmati::cuda {

// Returns the source for the run-time compiler; pure.
jit::Source kernel_source(program::KernelSpec const& kernel, Gpu const& gpu);

// The sources of all kernels of the program, that of the main one first.
std::vector<jit::Source> kernel_sources(program::Program const& program, Gpu const& gpu);

// Compiles the kernels, or finds them in the cache, and loads them onto the GPU.
std::unique_ptr<program::LoadedProgram> load(program::Program program, Gpu const& gpu);

}  // namespace cosmati::cuda
