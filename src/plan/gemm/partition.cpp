// Distribution of a product over blocks.
#include "src/plan/gemm/partition.h"

#include <fmt/format.h>

#include <algorithm>

#include "cosmati/gemm/steps.h"
#include "src/plan/buffers.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/small/gemv.h"
#include "src/plan/gemm/sum_of_parts.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

Index k_steps(GemmPolicy const& policy, CanonicalGemm const& form) {
  return ceiling_divide(form.k, policy.block_k);
}

// Appends split-K factors that divide the work of few tiles among all multiprocessors.
void append_splits(std::vector<KPartition>& list, GemmRecipe const& recipe, CanonicalGemm const& form,
                   Gpu const& gpu, PartitionChoice const& choice) {
  bool const asked = choice.asked.has_value();
  Index const blocks = tiles_of(recipe.policy, form) * form.batch;
  Index const steps = k_steps(recipe.policy, form);
  if (form.batch > 65535 || (!asked && blocks >= 4 * Index{gpu.multiprocessors})) return;
  // In gemv, the threads of a block share a step.
  bool const streams = recipe.policy.main_loop == MainLoop::gemv;
  Index const min_steps = asked || streams ? 1 : 8 * std::max(1, recipe.policy.cluster_k / 2);
  for (int splits : {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256})
    if (steps / splits >= min_steps) list.push_back({Partition::split_k, splits});
}

// Appends the numbers of parts with which the blocks of few tiles fill all multiprocessors once or twice.
void append_parallel_splits(std::vector<KPartition>& list, GemmRecipe const& recipe,
                            CanonicalGemm const& form, Gpu const& gpu, PartitionChoice const& choice) {
  Index const min_steps = choice.asked ? 1 : 4;
  Index const blocks = tiles_of(recipe.policy, form) * form.batch * recipe.policy.cluster_k;
  Index const resident = resident_blocks(recipe, form, gpu), steps = k_steps(recipe.policy, form);
  Index before = 1;
  for (int waves : {1, 2}) {
    Index const splits = std::min(resident * waves / std::max(Index{1}, blocks),
                                  steps / (min_steps * recipe.policy.cluster_k));
    if (splits > before) list.push_back({Partition::split_k_parallel, static_cast<int>(splits)});
    before = std::max(before, splits);
  }
}

// Stream-K pays off if the last wave of tiles is not full and a range has enough steps to justify its partial
// sums.
bool is_stream_worth_trying(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu) {
  constexpr Index min_steps = 8;  // per range
  // With 128 accumulators, a thread that also loads has too few registers for the stream-K scheduler and
  // spills.
  constexpr int max_registers = 96;  // for sums
  GemmPolicy const& p = recipe.policy;
  if (p.main_loop != MainLoop::warp_specialized &&
      p.thread_m * p.thread_n * size_of(recipe.sum) > 4 * max_registers)
    return false;
  Index const tiles = tiles_of(recipe.policy, form) * form.batch,
              resident = resident_blocks(recipe, form, gpu);
  return partition_violation(recipe, {Partition::stream_k, 1}, form).empty() &&
         tiles_to_stream(tiles, resident) > 0 && tiles * k_steps(recipe.policy, form) >= min_steps * resident;
}

}  // namespace

Index resident_blocks(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu) {
  if (recipe.policy.main_loop == MainLoop::warp_specialized) return resident_clusters(recipe.policy, gpu);
  return Index{gpu.multiprocessors} * std::max(1, footprint(recipe, form, gpu).blocks_resident);
}

std::vector<KPartition> partitions_worth_trying(GemmRecipe const& recipe, CanonicalGemm const& form,
                                                Gpu const& gpu, PartitionChoice const& choice) {
  std::vector<KPartition> list;
  auto const tries = [&](Partition partition) { return !choice.asked || choice.asked == partition; };
  if (tries(Partition::tiles)) list.push_back({});
  bool const splits = choice.asked || choice.may_split;
  bool const divides = choice.asked || recipe.policy.main_loop != MainLoop::tiny;
  if (tries(Partition::split_k) && splits && divides) append_splits(list, recipe, form, gpu, choice);
  if (choice.may_add_parts && splits && tries(Partition::split_k_parallel))
    append_parallel_splits(list, recipe, form, gpu, choice);
  if (choice.may_stream && tries(Partition::stream_k) &&
      (choice.asked || is_stream_worth_trying(recipe, form, gpu)))
    list.push_back({Partition::stream_k, 1});
  return list;
}

std::string no_partition(std::optional<Partition> asked) {
  char const* const reason =
      asked == Partition::stream_k
          ? "the emulator supports it for bf16 by wgmma, f64 by TMA and f32 by cp.async"
      : asked == Partition::split_k_parallel
          ? "it requires multiply wgmma, with at least 2 steps of k, no arrays of pointers, and in the "
            "emulator bf16"
          : "there are fewer than 2 steps of k, or more than 65535 matrices";
  return fmt::format("partition={}: {}", asked ? name_of(*asked) : "", reason);
}

void divide(GemmRecipe& recipe, KPartition const& k_partition, CanonicalGemm const& form, Index resident) {
  GemmPolicy& p = recipe.policy;
  p.partition = k_partition.partition;
  recipe.splits = k_partition.splits;
  recipe.streamed = recipe.stream_blocks = 0;
  Index const tiles = tiles_of(p, form) * form.batch;
  // If a cluster shares a tile along k, each block stores the partial sums of its share of the tile.
  Index slots = tiles * p.cluster_k * (recipe.splits - 1);
  if (p.partition == Partition::stream_k) {
    slots = resident;
    recipe.stream_blocks = static_cast<int>(slots);
    recipe.streamed = static_cast<int>(tiles_to_stream(tiles, slots));
  }
  recipe.flag_bytes = padded_bytes(static_cast<std::size_t>(slots) * sizeof(unsigned long long));
  if (p.partition == Partition::split_k_parallel) {
    recipe.flag_bytes = 0;
    recipe.partial_bytes = bytes_of_parts(form, recipe.splits);
    return;
  }
  if (p.main_loop == MainLoop::gemv) {
    recipe.partial_bytes = static_cast<std::size_t>(slots * gemv_slot_sums(p) * size_of(recipe.sum));
    return;
  }
  recipe.partial_bytes = static_cast<std::size_t>(slots) * static_cast<std::size_t>(p.block_m) *
                         static_cast<std::size_t>(p.block_n / p.cluster_k) *
                         static_cast<std::size_t>(size_of(recipe.sum));
}

std::string partition_violation(GemmRecipe const& recipe, KPartition const& k_partition,
                                CanonicalGemm const& form) {
  Index const steps = k_steps(recipe.policy, form);
  bool const parallel = k_partition.partition == Partition::split_k_parallel;
  MainLoop const main_loop = recipe.policy.main_loop;
  if (main_loop == MainLoop::tiny && k_partition.partition != Partition::tiles)
    return fmt::format("partition = {}; in tiny, a warp adds all of k", name_of(k_partition.partition));
  if (main_loop == MainLoop::gemv && k_partition.partition == Partition::stream_k)
    return "partition = stream_k; gemv has tiles and split_k";
  if (parallel && (recipe.policy.multiply != Multiply::wgmma || form.by_pointers))
    return "partition = split_k_parallel requires multiply wgmma, and no arrays of pointers";
  if ((k_partition.partition == Partition::split_k || parallel) &&
      (k_partition.splits > std::max(Index{1}, steps) || form.batch > 65535))
    return fmt::format(
        "{} splits for {} steps and {} matrices; at most one split per step and 65535 matrices",
        k_partition.splits, steps, form.batch);
  if (k_partition.partition != Partition::stream_k) return {};
  if (recipe.policy.cluster_k > 1)
    return fmt::format(
        "partition = stream_k with cluster_k = {}: blocks that share a tile along k support only tiles and "
        "split_k",
        recipe.policy.cluster_k);
  Index const tiles = tiles_of(recipe.policy, form);
  if (tiles > max_int || form.batch > max_int / std::max(Index{1}, tiles * std::max(Index{1}, steps)))
    return fmt::format("partition = stream_k of {} tiles of {} steps in {} matrices; at most {} steps", tiles,
                       steps, form.batch, max_int);
  return {};
}

}  // namespace cosmati::plan
