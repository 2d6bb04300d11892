// The convolution kernels on the emulator: those of a small catalogue, with the expression of the epilogue
// evaluated by the reference.
#pragma once
#include <memory>

#include "cosmati/ops/convolution.h"

namespace cosmati::emulator {

// The catalogue has tensor-core and SIMT kernels of these types, perhaps for operands that are widened first.
bool multiplies_convolution(MainLoop main_loop, Multiply multiply, DataType a, DataType b);

// Bytes that operands of types outside the catalogue need in the workspace.
std::size_t widening_bytes(ConvolutionProblem const& problem, ConvolutionRecipe const& recipe);

std::unique_ptr<Kernel<ConvolutionProblem>> prepare_convolution(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::emulator
