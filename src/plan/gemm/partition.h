// How the k steps are distributed over blocks: complete tiles, equal parts of each (split-K), or equal ranges
// of the steps of some tiles (stream-K); and the required workspace.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

struct KPartition {
  Partition partition = Partition::tiles;
  int splits = 1;
};

// The partitions worth predicting for the recipe's policy, complete tiles first. `asked`: only that one,
// whether it pays off or not; otherwise all of them, stream-K only if `may_stream`.
std::vector<KPartition> partitions_worth_trying(GemmRecipe const& recipe, CanonicalGemm const& form,
                                                Gpu const& gpu, std::optional<Partition> asked,
                                                bool may_stream);

// Returns the number of resident blocks; each has a range of the streamed steps.
Index resident_blocks(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu);

// Stores the partition in the recipe, with the resulting streamed tiles, blocks and workspace.
void divide(GemmRecipe& recipe, KPartition const& k_partition, CanonicalGemm const& form, Index resident);

// The reason why the recipe cannot be divided this way; empty if it can.
std::string partition_violation(GemmRecipe const& recipe, KPartition const& k_partition,
                                CanonicalGemm const& form);

}  // namespace cosmati::plan
