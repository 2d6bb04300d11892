// The planner's part of the warp_specialized main loop: requirements of TMA and wgmma, policies, and
// predicted times.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cosmati/ops/device.h"
#include "cosmati/tile/tensor_box.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {

inline constexpr int step_bytes = 128;  // bytes of depth per step: the span of the 128-byte swizzle

// Whether wgmma supports these types, for a suitable major.
bool wgmma_takes(DataType a, DataType b, DataType sum);

// Empty, or why TMA does not support the operands that it loads, with the nearest valid value.
std::string tma_violation(CanonicalGemm const& form);

// Empty, or why wgmma or TMA does not support the problem, with the nearest valid value.
std::string wgmma_violation(CanonicalGemm const& form, Gpu const& gpu);

// Whether TMA can load the operand's (outer, depth) elements, and wgmma read them, without repacking.
bool wgmma_takes_operand(MatrixForm const& operand, Index outer, Index depth);

// Whether TMA can load the operand a, M-major with 32-bit elements, and the kernel pass it to wgmma through
// registers.
bool through_registers(MatrixForm const& a, Index m, Index k);

// Returns the major that the operand must or may have: K-major, or its own for 16-bit types.
Along wgmma_direction(MatrixForm const& operand, Index depth);

// Whether D is stored by TMA.
bool stores_by_tma(GemmPolicy const& policy, CanonicalGemm const& form);

// Named tiles (small to vast) with k steps of 128 bytes. Suffixes _pair, _four, _eight: one tile shared by 2,
// 4 or 8 blocks along k. Others are named by their extents.
std::vector<NamedPolicy> warpgroup_policies(int element_bytes, DataType sum = DataType::f32);
// One tile of a block's warpgroups of warp_m * 4 rows, in steps of 128 bytes.
GemmPolicy warpgroup_policy(int block_m, int block_n, int warp_m, int stages, int element_bytes);
// The named tiles, plus tiles with few columns for convolutions of more than one tap.
std::vector<NamedPolicy> window_policies(int element_bytes, bool one_tap = false);
// The tiles of one phase in dgrad_phases; four of them are 256 columns.
std::vector<NamedPolicy> phase_policies(int element_bytes);

// The number of which the columns of a warpgroup must be a multiple, if B is K-major; otherwise 16.
int columns_unit(int element_bytes, DataType sum, bool promotes);

// Empty, or the reason why this policy is invalid.
std::string warpgroup_policy_violation(GemmPolicy const& policy, int element_bytes,
                                       DataType sum = DataType::f32);

// Empty, or the reason why a warpgroup cannot read its columns of B.
std::string columns_violation(GemmPolicy const& policy, Along b, int element_bytes);

// Empty, or the reason why the last box of an N-major B ends beyond its tile.
std::string boxes_violation(GemmPolicy const& policy, int element_bytes);

// Empty, or the reason why the blocks of a cluster cannot each load a slice of the operands that they share.
std::string slices_violation(GemmPolicy const& policy, Along a, Along b, int element_bytes);

// Whether at least half of each tile, or of each cluster's blocks, lies beyond the edge of D, so that smaller
// ones do the same. Tiles of a single matrix count only for sums of more than one step; others are bound by
// stores.
bool is_half_empty(GemmPolicy const& policy, CanonicalGemm const& form);

// Makes the steps shallower if k is shorter, because TMA is slow to fill missing elements with zeros.
void shorten_steps(GemmPolicy& policy, CanonicalGemm const& form);

// The bytes of the operands' tiles of a step, each of which is aligned.
int bytes_of_stage(GemmPolicy const& policy, CanonicalGemm const& form);

// How the warps of a block store their tile by TMA.
TensorStore tensor_store_of(GemmPolicy const& policy, CanonicalGemm const& form);

// Returns the bytes of the kernel's SharedStorage.
int warp_specialized_shared_bytes(GemmPolicy const& policy, CanonicalGemm const& form);

// Returns the tiles of one matrix, including those that only fill the last clusters.
Index tiles_of_clusters(GemmPolicy const& policy, CanonicalGemm const& form);

// The multiprocessors that clusters of this size fill. They are organized in GPCs, which clusters of more
// than two blocks do not fill completely: on an H200 with 132, 30 clusters of four blocks or 15 of eight are
// resident.
Index multiprocessors_of_clusters(int blocks, Gpu const& gpu);

// Returns the number of resident blocks.
Index resident_clusters(GemmPolicy const& policy, Gpu const& gpu);

// The bytes of the larger operand if several clusters read it, at different times; otherwise 0.
double bytes_read_again(CanonicalGemm const& form, GemmPolicy const& policy);

struct Volume;
// The predicted time in seconds (time/warp_specialized.cpp).
double predict_warp_specialized(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu,
                                Volume const& volume);
// Whether recipe.predicted_seconds is less than 20 us and of a single round of blocks, whose predictions
// deviate less than others (SingleRoundFit in time/fit.h).
bool is_short_round(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu,
                    Volume const& volume);
// A lower bound of that time for `splits` parts by split-K; with splits = 1, for every partition.
double least_seconds_by_wgmma(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu,
                              Volume const& volume, int splits);

}  // namespace cosmati::plan
