// The GPUs of this machine, as reported by the driver.
#pragma once
#include "cosmati/ops/device.h"

namespace cosmati::cuda {

int device_count();         // throws Error(unavailable) if there is no driver; 0 is not an error
Gpu read_gpu(int ordinal);  // throws Error(unavailable) with the valid ordinals

}  // namespace cosmati::cuda
