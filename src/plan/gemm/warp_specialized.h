// The plan's side of the warp_specialized main loop: what the tensor copy engine (TMA) and wgmma take, the
// policies for them, and what they cost.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/device.h"
#include "cosmati/tile/tensor_box.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {

// wgmma multiplies such operands, where they lie as it wants.
bool wgmma_takes(DataType a, DataType b, DataType sum);

// Empty, or why the problem is not for wgmma or the copy engine, with the nearest legal value.
std::string wgmma_violation(CanonicalGemm const& form, Gpu const& gpu);

// The copy engine can fetch the operand's (outer, depth) elements, and wgmma multiply them, as they lie.
bool wgmma_takes_operand(MatrixForm const& operand, Index outer, Index depth, Index batch);

// The copy engine can fetch the operand a, 32-bit elements along m, and the kernel hand it to wgmma through
// registers.
bool through_registers(MatrixForm const& a, Index m, Index k, Index batch);

// Along which neighbors of the operand must lie, or may: k, but for 16-bit types as they do.
Along wgmma_direction(MatrixForm const& operand, Index depth);

// D leaves the kernel by the copy engine, too.
bool stores_by_engine(GemmPolicy const& policy, CanonicalGemm const& form);

// Named tiles, small to vast, for steps of 128 bytes; `_pair`, `_four`, `_eight`: shared by so many blocks
// along k.
std::vector<NamedPolicy> warpgroup_policies(int element_bytes);
// Those, and tiles of few columns for convolutions.
std::vector<NamedPolicy> window_policies(int element_bytes);

// Empty, or the sentence that says why no kernel can be made of this policy.
std::string warpgroup_policy_violation(GemmPolicy const& policy, int element_bytes);

TensorStore tensor_store_of(GemmPolicy const& policy, CanonicalGemm const& form);

// Bytes of the kernel's SharedStorage.
int warp_specialized_shared_bytes(GemmPolicy const& policy, CanonicalGemm const& form);

// Tiles of one matrix, those included that only fill the last clusters.
Index tiles_of_clusters(GemmPolicy const& policy, CanonicalGemm const& form);

// Blocks that run at once.
Index places_of_clusters(GemmPolicy const& policy, Gpu const& gpu);

struct Volume;
double predict_warp_specialized(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu,
                                Volume const& volume);

}  // namespace cosmati::plan
