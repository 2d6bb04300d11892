// The emulator's depthwise filter gradient.
#pragma once
#include "src/plan/conv/depthwise_filter.h"
#include "src/plan/conv/launch.h"

namespace cosmati::emulator {

// The operands are of `type`: f64, f32 or s32, as the sums are.
void launch_depthwise_filter(plan::DepthwiseFilterForm const& gradient, ConvolutionRecipe const& recipe,
                             DataType type, plan::ConvolutionPointers const& pointers, std::byte* workspace,
                             int host_threads);

}  // namespace cosmati::emulator
