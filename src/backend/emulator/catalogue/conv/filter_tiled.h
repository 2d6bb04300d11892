// The emulator's filter gradient by direct_tiled.
#pragma once
#include "src/plan/conv/filter_tiled.h"
#include "src/plan/conv/launch.h"

namespace cosmati::emulator {

// The operands are of `type`: f64, f32 or s32, as the sums are; `bias` may be null.
void launch_filter_tiled(plan::FilterTiledForm const& gradient, ConvolutionRecipe const& recipe,
                         DataType type, plan::ConvolutionPointers const& pointers, void* bias,
                         Index bias_stride, std::byte* workspace, int host_threads);

}  // namespace cosmati::emulator
