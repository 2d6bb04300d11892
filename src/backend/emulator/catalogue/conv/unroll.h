// The pass that writes the unrolled image, on the emulator.
#pragma once
#include "cosmati/ops/convolution_recipe.h"
#include "src/plan/conv/form.h"

namespace cosmati::emulator {

// Where the matrix lies in the workspace.
void const* unroll(plan::ConvolutionForm const& form, UnrollRecipe const& recipe, void const* image,
                   std::byte* workspace, int host_threads);

}  // namespace cosmati::emulator
