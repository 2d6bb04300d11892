// Batches by pointers through the emulated warp_specialized kernel, which has tensor maps made on the device.
#pragma once
#include <memory>

#include "cosmati/ops/gemm.h"

namespace cosmati::emulator {

std::unique_ptr<Kernel<GemmProblem>> prepare_pointers(Plan<GemmProblem> const& plan);

}  // namespace cosmati::emulator
