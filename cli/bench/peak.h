// Measured arithmetic peak of this machine.
#pragma once
#include "cosmati/core/number.h"

namespace cosmati::cli {

// Floating-point operations per second of chains of fused multiply-adds on `threads` threads at once: the sum
// of each thread's best short call. Returns 0 for types that this loop does not measure (all but f64, f32 and
// tf32).
double measured_peak(DataType type, int threads);

}  // namespace cosmati::cli
