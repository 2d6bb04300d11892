// The GPUs of this machine, as the driver describes them.
#pragma once
#include "cosmati/ops/device.h"

namespace cosmati::cuda {

int device_count();         // throws Error(unavailable) where there is no driver; 0 is no failure
Gpu read_gpu(int ordinal);  // throws Error(unavailable) that names the legal ordinals

}  // namespace cosmati::cuda
