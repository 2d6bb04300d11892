// The emulator's kernels that slide windows over an image: direct_tiled and depthwise.
#pragma once
#include "reference/epilogue.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::emulator {

// One launch; a single form takes the same way. The operands are of `type`: f64, f32 or s32, as the sums are.
void launch_sliding(std::vector<plan::SlidingForm> const& launch, ConvolutionRecipe const& recipe,
                    DataType type, reference::ElementEpilogue const& expression, void const* image,
                    void const* filter, void* result, int host_threads);

}  // namespace cosmati::emulator
