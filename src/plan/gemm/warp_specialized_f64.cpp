// Requirements and policies of warp_specialized in f64.
#include "src/plan/gemm/warp_specialized_f64.h"

#include <fmt/format.h>

#include "cosmati/core/cluster.h"
#include "src/ops/architecture.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

constexpr int row_elements = step_bytes / 8;  // of a tile in shared memory

}  // namespace

std::string specialized_f64_violation(CanonicalGemm const& form, Gpu const& gpu) {
  if (std::string sentence = wgmma_device_violation(gpu); !sentence.empty()) return sentence;
  if (form.a.type != DataType::f64 || form.b.type != DataType::f64)
    return fmt::format("multiply mma does not support {} and {} with sums in f64",
                       name_of(form.swapped ? form.b.type : form.a.type),
                       name_of(form.swapped ? form.a.type : form.b.type));
  if (form.by_pointers) return "warp_specialized in f64 does not support arrays of pointers";
  return tma_violation(form);
}

std::vector<NamedPolicy> specialized_f64_policies() {
  // Measured on an H200 (docs/decisions/0004): with steps of 32, tensor cores wait less often for the next
  // step than with twice as many stages of 16.
  struct Tiles {
    char const* name;
    int block_m, block_n, warp_m, warp_n, stages, blocks;
  };
  constexpr Tiles all[] = {{"small", 64, 64, 32, 32, 3, 2},
                           {"tall", 128, 64, 32, 32, 4, 1},
                           {"large", 128, 128, 64, 32, 3, 1},
                           {"wide", 64, 128, 32, 32, 4, 1}};
  std::vector<NamedPolicy> list;
  for (Tiles const& tiles : all) {
    GemmPolicy policy;
    policy.block_m = tiles.block_m, policy.block_n = tiles.block_n, policy.block_k = 2 * row_elements;
    policy.warp_m = tiles.warp_m, policy.warp_n = tiles.warp_n;
    policy.thread_m = tiles.warp_m / 8, policy.thread_n = tiles.warp_n / 4;
    policy.stages = tiles.stages;
    policy.blocks = tiles.blocks;
    policy.main_loop = MainLoop::warp_specialized;
    policy.multiply = Multiply::mma;
    list.push_back({tiles.name, policy});
  }
  return list;
}

std::string specialized_f64_policy_violation(GemmPolicy const& p) {
  if (p.multiply != Multiply::mma) return "main loop warp_specialized multiplies f64 by mma";
  if (p.block_k < row_elements || p.block_k % row_elements != 0)
    return fmt::format("block_k = {}; a step of warp_specialized in f64 has a multiple of {} elements",
                       p.block_k, row_elements);
  if (p.warp_m % 16 != 0 || p.warp_n % 16 != 0 || p.thread_m * 8 != p.warp_m || p.thread_n * 4 != p.warp_n)
    return fmt::format(
        "multiply mma needs a warp tile of multiples of 16 and thread_m = warp_m / 8, thread_n = warp_n / 4; the "
        "warp tile is {}x{}, the thread's {}x{}",
        p.warp_m, p.warp_n, p.thread_m, p.thread_n);
  if (p.block_m % p.warp_m != 0 || p.block_n % p.warp_n != 0 || p.block_m > 256 || p.block_n > 256)
    return fmt::format(
        "a block tile of {}x{}; valid values: multiples of the warp tile, {}x{}, up to 256x256", p.block_m,
        p.block_n, p.warp_m, p.warp_n);
  int const warps = p.warps_m() * p.warps_n(), most = 64;
  if (p.ping_pong || (warps != 4 && warps != 8))
    return fmt::format("{} warps; warp_specialized in f64 has 4 or 8, without ping_pong", warps);
  if (p.thread_m * p.thread_n > most)
    return fmt::format("{} accumulators per thread; registers hold at most {} in f64",
                       p.thread_m * p.thread_n, most);
  if (p.stages < 2 || p.stages > 16)
    return fmt::format("stages = {}; valid values for warp_specialized: 2 to 16", p.stages);
  if (p.cluster_k != 1 || p.cluster_m * p.cluster_n > max_cluster_blocks ||
      p.block_m % (8 * p.cluster_n) != 0 || p.block_n % (8 * p.cluster_m) != 0)
    return fmt::format(
        "a cluster of {}x{}x{} blocks; warp_specialized in f64 supports at most {} along m and n, each with a "
        "multiple of 8 rows of the shared tiles, and none along k",
        p.cluster_m, p.cluster_n, p.cluster_k, max_cluster_blocks);
  if (p.epilogue != EpilogueSchedule::direct)
    return "warp_specialized in f64 has only the epilogue direct, and long expressions are staged";
  return {};
}

}  // namespace cosmati::plan
