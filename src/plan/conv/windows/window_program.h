// Convolutions whose windows TMA unrolls, as programs.
#pragma once
#include "src/plan/conv/program.h"

namespace cosmati::plan {

// The kernel of the emulator's catalogue for operands of this type; `along_of_b`: of the filter.
program::KernelSpec emulated_window_kernel(DataType type, bool image_is_a, Along along_of_b);

// Passes that pack operands, one launch per product or one for all phases, and the pass that unpacks.
program::Program window_program(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
