// Convolutions whose windows TMA unrolls, as programs.
#pragma once
#include "src/plan/conv/program.h"
#include "src/plan/conv/windows/tma_im2col.h"

namespace cosmati::plan {

// The kernel of the emulator's catalogue for operands of this type.
program::KernelSpec emulated_window_kernel(DataType type, WindowOperands const& operands);

program::KernelSpec emulated_merged_kernel(DataType type, Along along_of_filter);

// Passes that pack operands, one launch per product or one for all phases, and the pass that unpacks.
program::Program window_program(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
