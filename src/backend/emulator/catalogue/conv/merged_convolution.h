// The emulator's kernel direct_merged.
#pragma once
#include "reference/epilogue.h"
#include "src/plan/conv/direct_merged.h"
#include "src/plan/conv/launch.h"

namespace cosmati::emulator {

// The operands are of `type`: f64, f32 or s32, as the sums are.
void launch_merged(plan::MergedForm const& merged, plan::MergedGrid const& grid, int shared_bytes,
                   DataType type, reference::ElementEpilogue const& expression, void const* dy, void const* w,
                   void* dx, int host_threads);

}  // namespace cosmati::emulator
