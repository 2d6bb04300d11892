// Tiles by wgmma that are named by their extents, and those that fit one product.
#include "src/plan/gemm/tiles/fitted_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

// What barriers and alignment leave of a block's 227 KiB.
constexpr int max_shared_bytes = 225 * 1024;

// Beyond this, a thread of two warpgroups has more than 128 sums.
bool is_large(Index block_m, Index block_n) { return block_m * block_n > Index{128} * 256; }

// With as many stages as fit in addition to a store buffer: for the whole tile or, if it is large, for one
// box per warp.
NamedPolicy tile_of(int block_m, int block_n, int cluster_m, int cluster_n, int element_bytes,
                    int result_bytes) {
  NamedPolicy named;
  named.policy = warpgroup_policy(block_m, block_n, block_m > 192 ? 32 : 16, 2, element_bytes);
  int const buffer = is_large(block_m, block_n) ? named.policy.consumer_warps() * tensor_store_rows *
                                                      columns_of_store(block_n, result_bytes) * result_bytes
                                                : block_m * block_n * std::min(result_bytes, 2);
  int const stage = (block_m + block_n) * step_bytes;
  named.policy.stages = std::clamp((max_shared_bytes - buffer) / stage, 2, 12);
  named.policy.cluster_m = cluster_m;
  named.policy.cluster_n = cluster_n;
  named.name = fmt::format("{}x{}", block_m, block_n);
  if (cluster_m * cluster_n > 1) named.name += fmt::format("_{}x{}", cluster_m, cluster_n);
  return named;
}

// The least number of columns, in whole units, with which at most `tiles_n` tiles cover D.
Index fitted_columns(CanonicalGemm const& form, Index tiles_m, Index tiles_n, int cluster_m) {
  int const result = size_of(form.d.type);
  bool const along_n = access_of(form.b).along == Along::mn;
  Index const least = ceiling_divide(form.n, tiles_n);
  bool const in_sixteens = (tiles_m > 1 && least > 64) || result >= 4;
  // Columns beyond those of the tile are loaded, too, which costs most where memory limits the product.
  constexpr Index few_rows = 64;
  int const least_unit = along_n && form.m <= few_rows ? 32 : along_n || in_sixteens ? 16 : 8;
  int const unit =
      std::max(columns_unit(size_of(form.a.type), form.sum, form.of_pieces) * cluster_m, least_unit);
  return ceiling_divide(least, unit) * unit;
}

// Leaves as many stages as fit in addition to what the epilogue needs.
void reduce_stages(GemmPolicy& policy, CanonicalGemm const& form, Gpu const& gpu, EpilogueSchedule schedule) {
  GemmPolicy stored = policy;
  stored.epilogue = stores_by_tma(policy, form) ? schedule : EpilogueSchedule::staged;
  int const stage = bytes_of_stage(policy, form);
  if (int const excess = warp_specialized_shared_bytes(stored, form) - gpu.shared_bytes_per_block; excess > 0)
    policy.stages = std::max(2, policy.stages - (excess + stage - 1) / stage);
}

// The columns of a tile of 256 rows whose sums fit in registers, in addition to those of a step if they are
// promoted, fragments of A, and the values of an epilogue: with more, epilogues with gelu, c and another
// matrix used 16 to 300 bytes of local memory (sm_90a, CUDA 13.0).
Index columns_in_registers(CanonicalGemm const& form, EpilogueSchedule schedule) {
  constexpr Index most = 192, least = 128, of_schedule = 16, of_matrix = 32, of_fragments = 32;
  if (form.of_pieces || (is_float8(form.a.type) && !form.fast_sums)) return least;
  auto const is_matrix = [](MatrixForm const& operand) { return operand.by_m && operand.by_n; };
  Index const matrices = (form.c.present ? 1 : 0) +
                         std::count_if(form.operands.begin(), form.operands.end(), is_matrix) +
                         std::ssize(form.stores);
  bool const fragments = size_of(form.a.type) == 4 && access_of(form.a).along == Along::mn;
  Index const left = most - (schedule == EpilogueSchedule::staged ? of_schedule : 0) - of_matrix * matrices -
                     (fragments && matrices > 0 ? of_fragments : 0);
  return std::max(least, left / 16 * 16);
}

}  // namespace

std::optional<NamedPolicy> tile_named(std::string const& name, int element_bytes, int result_bytes) {
  int block_m = 0, block_n = 0, cluster_m = 1, cluster_n = 1, end = 0;
  char const* const text = name.c_str();
  if (std::sscanf(text, "%3dx%3d%n_%1dx%1d%n", &block_m, &block_n, &end, &cluster_m, &cluster_n, &end) < 2 ||
      static_cast<std::size_t>(end) != name.size() || block_m < 64 || block_n < 1)
    return {};
  NamedPolicy named = tile_of(block_m, block_n, cluster_m, cluster_n, element_bytes, result_bytes);
  if (named.name != name) return {};  // "064x80"
  return named;
}

std::vector<NamedPolicy> fitted_policies(CanonicalGemm const& form, Gpu const& gpu, EpilogueSchedule schedule,
                                         bool of_windows) {
  struct Height {
    int block_m;
    Index max_columns;
  };
  Height const heights[] = {{64, 224}, {128, 256}, {192, 192}, {256, columns_in_registers(form, schedule)}};
  // Blocks that share a tile of B or of A read it from L2 once: of 24 products in 16 bits on an H200, some
  // took up to 1.5 times as long without (docs/decisions/0045).
  struct Cluster {
    int m, n;
  };
  constexpr Cluster clusters[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}};
  int const size = size_of(form.a.type), result = size_of(form.d.type);
  if (form.b.by_threads || form.batch == 0) return {};
  // Elsewhere, only two rows of tiles share each tile of B.
  bool const any_cluster = size == 2 && form.batch == 1 && !form.by_pointers && !form.a.by_threads;
  auto const pair_of_rows = [&](int block_m) {
    return form.batch == 1 && ceiling_divide(form.m, Index{block_m}) == 2;
  };
  // With 3 stages, products in 16 bits were 10 to 20 % slower than predicted (728x5776x728 on an H200),
  // except by large tiles, whose steps take longer.
  auto const least_stages = [&](int block_m, Index columns) {
    return size == 2 && !is_large(block_m, columns) ? 4 : 2;
  };
  std::vector<NamedPolicy> list;
  auto const add = [&](Height const& height, int cluster_m, int cluster_n, Index tiles_m, Index tiles_n,
                       double share) {
    if (tiles_n == 0) return;
    Index const columns = fitted_columns(form, tiles_m, tiles_n, cluster_m);
    if (columns < 16 || columns > height.max_columns) return;
    // Otherwise, epilogues of large tiles used 144 to 280 bytes of local memory.
    if (is_large(height.block_m, columns) && !form.identity && columns % 32 != 0) return;
    // A single tile of A or B is small, and stays in L2; and there is no second block for it.
    bool const shares = cluster_m * cluster_n > 1;
    if (any_cluster && shares &&
        (form.m <= height.block_m * std::max(1, cluster_m - 1) ||
         form.n <= columns * std::max(1, cluster_n - 1)))
      return;
    NamedPolicy tile = tile_of(height.block_m, to_int(columns), cluster_m, cluster_n, size, result);
    reduce_stages(tile.policy, form, gpu, schedule);
    if (tile.policy.stages < least_stages(height.block_m, columns) || has_policy(list, tile.name)) return;
    tile.is_fitted = true;
    tile.share = tiles_m > 1 && !is_large(height.block_m, columns) ? std::min(share, 0.95) : share;
    list.push_back(std::move(tile));
  };
  for (Height const& height : heights)
    for (auto const& [cluster_m, cluster_n] : clusters) {
      bool const shares_windows = of_windows && cluster_m == 1 && cluster_n == 2;
      if (!any_cluster && !shares_windows &&
          (cluster_m != (pair_of_rows(height.block_m) ? 2 : 1) || cluster_n > 1))
        continue;
      Index const tiles_m =
          ceiling_divide(form.m, Index{height.block_m} * cluster_m) * cluster_m * form.batch;
      if (tiles_m == 0) continue;
      Index const places = multiprocessors_of_clusters(cluster_m * cluster_n, gpu);
      for (int rounds = 1; rounds <= 2; ++rounds)
        add(height, cluster_m, cluster_n, tiles_m, places * rounds / (tiles_m * cluster_n) * cluster_n, 1);
      // Many rounds of few columns. Tiles of few steps are predicted too fast (docs/decisions/0045).
      constexpr Index few_steps = 4;
      double const share = form.k * size <= few_steps * step_bytes ? 0.85 : 0.95;
      for (int tiles_n = cluster_n; tiles_n <= 3 && cluster_m * cluster_n <= 2; tiles_n += cluster_n)
        if (tiles_m * tiles_n > 2 * places) add(height, cluster_m, cluster_n, tiles_m, tiles_n, share);
    }
  return list;
}

void append_tiles(std::vector<NamedPolicy>& list, CanonicalGemm const& form, Gpu const& gpu,
                  EpilogueSchedule schedule, std::vector<std::string> const& names, bool of_windows) {
  for (std::string const& name : names)
    if (auto tile = tile_named(name, size_of(form.a.type), size_of(form.d.type));
        tile && !has_policy(list, name)) {
      reduce_stages(tile->policy, form, gpu, schedule);
      list.push_back(*std::move(tile));
    }
  if (!names.empty()) return;
  std::vector<NamedPolicy> fitted = fitted_policies(form, gpu, schedule, of_windows);
  std::erase_if(fitted, [&](NamedPolicy const& tile) {
    return std::any_of(list.begin(), list.end(), [&](NamedPolicy const& known) {
      GemmPolicy const &p = known.policy, &q = tile.policy;
      return p.block_n == q.block_n && p.block_m == q.block_m && p.cluster_m == q.cluster_m &&
             p.cluster_n == q.cluster_n && p.cluster_k == q.cluster_k && !p.ping_pong;
    });
  });
  std::move(fitted.begin(), fitted.end(), std::back_inserter(list));
}

void append_tile_of_groups(std::vector<NamedPolicy>& list, CanonicalGemm const& form, Gpu const& gpu,
                           EpilogueSchedule schedule) {
  NamedPolicy tile = tile_of(64, 256, 1, 1, size_of(form.a.type), size_of(form.d.type));
  reduce_stages(tile.policy, form, gpu, schedule);
  tile.share = 0.95;
  list.push_back(std::move(tile));
}

}  // namespace cosmati::plan
