// The emulator's kernels that slide windows over an image: direct_tiled and depthwise.
#pragma once
#include "reference/epilogue.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::emulator {

// The operands are of `type`: f64, f32 or s32, as the sums are.
void launch_sliding(plan::SlidingForm const& sliding, ConvolutionRecipe const& recipe, DataType type,
                    reference::ElementEpilogue const& expression, plan::ConvolutionPointers const& pointers,
                    int host_threads);

}  // namespace cosmati::emulator
