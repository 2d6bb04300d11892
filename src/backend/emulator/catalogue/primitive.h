// The kernels of primitives in the emulator: one instance for all types and expressions.
#pragma once
#include "src/plan/primitive/program.h"

namespace cosmati::emulator {

// Run one launch of a pass, whose parameters are bound.
void launch_map(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters, int host_threads);
void launch_group(plan::PrimitivePass const& pass, PrimitiveGroup const& group, int host_threads);
void launch_reduce(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters, int host_threads);
void launch_channels(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters,
                     int host_threads);
void launch_rows(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters, int host_threads);
void launch_windows(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters, int host_threads);

}  // namespace cosmati::emulator
