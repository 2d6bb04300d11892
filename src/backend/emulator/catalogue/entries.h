// What the module exports: from a plan to the kernel of the catalogue that computes it.
#pragma once
#include "src/backend/emulator/catalogue.h"

namespace cosmati::emulator {

// Convolutions whose windows the copy engine brings.
std::unique_ptr<Kernel<ConvolutionProblem>> prepare_window_product(Plan<ConvolutionProblem> const& plan);
void run_primitive(plan::PrimitiveProgram const& program, plan::PrimitiveRun const& run, int host_threads);
RunKernel find_kernel(std::string const& key);

}  // namespace cosmati::emulator
