// Batches of tiny matrices by the main loop tiny, which multiplies one per warp.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {

// The reason why tiny does not support the problem; empty if it does.
std::string tiny_violation(CanonicalGemm const& form);

// The multiplies that tiny has for these types on this GPU, the preferred one first.
std::vector<Multiply> tiny_multiplies(CanonicalGemm const& form, Gpu const& gpu);

// The policies, named after their tiles, for operands of `width` elements per vector and `depth` of k; none
// if a lane would load too many vectors.
std::vector<NamedPolicy> tiny_policies(Multiply multiply, DataType sum, int element_bytes, int width,
                                       Index depth);
// The policies for operands of full width.
std::vector<NamedPolicy> tiny_policies(Multiply multiply, DataType sum, int element_bytes);

double predict_tiny(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu, int resident);

}  // namespace cosmati::plan
