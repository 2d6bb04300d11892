// Batches by pointers through the emulated warp_specialized kernel, which has tensor maps made on the device.
#pragma once
#include <memory>
#include <string>

#include "cosmati/ops/gemm.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::emulator {

// Empty, or which types and directions there is a kernel for.
std::string pointers_violation(plan::CanonicalGemm const& form);

std::unique_ptr<Kernel<GemmProblem>> prepare_pointers(Plan<GemmProblem> const& plan);

}  // namespace cosmati::emulator
