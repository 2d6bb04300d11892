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

// What the request prescribes, and what the caller's kernels support.
struct PartitionChoice {
  std::optional<Partition> asked;  // only this one, even if it does not pay off
  bool may_stream = false;         // otherwise stream-K is tried only on request
  bool may_split = true;           // otherwise k is split only on request
  bool may_add_parts = false;      // the kernels support split_k_parallel, which is otherwise rejected
};

// The partitions worth predicting for the recipe's policy, complete tiles first.
std::vector<KPartition> partitions_worth_trying(GemmRecipe const& recipe, CanonicalGemm const& form,
                                                Gpu const& gpu, PartitionChoice const& choice);

// The reason why none is worth trying if `asked` is requested.
std::string no_partition(std::optional<Partition> asked);

// Returns the number of resident blocks; each has a range of the streamed steps.
Index resident_blocks(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu);

// Stores the partition in the recipe, with the resulting streamed tiles, blocks and workspace.
void divide(GemmRecipe& recipe, KPartition const& k_partition, CanonicalGemm const& form, Index resident);

// The reason why the recipe cannot be divided this way; empty if it can.
std::string partition_violation(GemmRecipe const& recipe, KPartition const& k_partition,
                                CanonicalGemm const& form);

}  // namespace cosmati::plan
