// The planner's part of warp_specialized in f64, which multiplies by mma.sync, since wgmma has no f64.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {

// Empty, or why warp_specialized does not support this product in f64.
std::string specialized_f64_violation(CanonicalGemm const& form, Gpu const& gpu);

std::vector<NamedPolicy> specialized_f64_policies();

// Empty, or the reason why this policy is invalid.
std::string specialized_f64_policy_violation(GemmPolicy const& policy);

}  // namespace cosmati::plan
