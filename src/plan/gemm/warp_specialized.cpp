// The requirements of wgmma and TMA, and the policies of the main loop.
#include "src/plan/gemm/warp_specialized.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "cosmati/core/cluster.h"
#include "src/ops/architecture.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

// Tiles begin at multiples of 1024 bytes and must end at one: the barrier of a stage expects the bytes of its
// tiles with their padding, and would wait forever for those that TMA does not write.
constexpr int tile_bytes_unit = 1024;

// What barriers and alignment leave of a block's 227 KiB.
constexpr int max_shared_bytes = 225 * 1024;

// The number of which the columns of a warpgroup must be a multiple, if B is K-major; otherwise 16.
int columns_unit(int element_bytes, DataType sum, bool promotes) {
  return sum == DataType::f32 && element_bytes != 1 && !promotes ? 8 : 16;
}

// The reason why TMA cannot copy `matrix` of `rows` by `columns` elements, contiguous along the columns or
// along the rows; empty if it can.
std::string tma_violation(char const* name, MatrixForm const& matrix, Index rows, Index columns,
                          bool along_columns) {
  constexpr Index unit = 16;  // bytes
  int const size = size_of(matrix.type);
  if (!along_columns && matrix.row_stride != 1 && rows != 1)
    return fmt::format("operand {}: not contiguous; TMA requires a stride of 1, not {} and {}", name,
                       matrix.row_stride, matrix.column_stride);
  if (matrix.alignment % unit != 0)
    return fmt::format("operand {}: aligned to {} bytes; TMA requires {}", name, matrix.alignment, unit);
  Index const other = along_columns ? matrix.row_stride : matrix.column_stride;
  bool const one = (along_columns ? rows : columns) == 1;
  if (!one && other == 0) return fmt::format("operand {}: a stride of 0, which TMA does not support", name);
  if (!one && other * size % unit != 0)
    return fmt::format(
        "operand {}: leading dimension {} is not a multiple of {} elements ({} bytes); nearest: {}", name,
        other, unit / size, unit, (other + unit / size - 1) / (unit / size) * (unit / size));
  if (matrix.batch_stride * size % unit != 0)
    return fmt::format("operand {}: the stride of the batch, {}, is not a multiple of {} elements", name,
                       matrix.batch_stride, unit / size);
  return {};
}

// The same for an operand.
std::string tma_violation(char const* name, MatrixForm const& operand, Index outer, Index depth) {
  return tma_violation(name, operand, outer, depth, operand.column_stride == 1 || depth == 1);
}

bool tma_takes(MatrixForm const& operand, Index outer, Index depth) {
  return tma_violation("", operand, outer, depth).empty();
}

}  // namespace

std::string tma_violation(CanonicalGemm const& form) {
  if (form.batch > 1 && !form.by_pointers &&
      ((form.a.batch_stride == 0 && !form.a.by_threads) || (form.b.batch_stride == 0 && !form.b.by_threads)))
    return "TMA does not support an operand shared by all matrices of a batch";
  std::string sentence;
  if (!form.a.by_threads) sentence = tma_violation(form.swapped ? "b" : "a", form.a, form.m, form.k);
  if (sentence.empty() && !form.b.by_threads)
    sentence = tma_violation(form.swapped ? "a" : "b", form.b, form.n, form.k);
  return sentence;
}

bool wgmma_takes(DataType a, DataType b, DataType sum) {
  if (is_int8(a) && is_int8(b)) return sum == DataType::s32;
  if (sum == DataType::f16) return a == DataType::f16 && b == DataType::f16;
  bool const halves = a == b && (a == DataType::f16 || a == DataType::bf16 || a == DataType::tf32);
  return sum == DataType::f32 && (halves || (is_float8(a) && is_float8(b)));
}

std::string wgmma_violation(CanonicalGemm const& form, Gpu const& gpu) {
  if (std::string sentence = wgmma_device_violation(gpu); !sentence.empty()) return sentence;
  if (!wgmma_takes(form.a.type, form.b.type, form.sum))
    return fmt::format("multiply wgmma does not support {} and {} with sums in {}", name_of(form.a.type),
                       name_of(form.b.type), name_of(form.sum));
  std::string const sentence = tma_violation(form);
  if (!sentence.empty() || size_of(form.a.type) == 2) return sentence;
  for (MatrixForm const* operand : {&form.a, &form.b})
    if (access_of(*operand).along == Along::mn &&
        !(operand == &form.a && through_registers(form.a, form.m, form.k, form.by_pointers ? 1 : form.batch)))
      return fmt::format("multiply wgmma requires {} contiguous along k; operand {} is contiguous along {}",
                         name_of(operand->type), (operand == &form.a) == form.swapped ? 'b' : 'a',
                         (operand == &form.a) == form.swapped ? 'n' : 'm');
  return {};
}

bool wgmma_takes_operand(MatrixForm const& operand, Index outer, Index depth, Index batch) {
  return tma_takes(operand, outer, depth) && (batch == 1 || operand.batch_stride != 0) &&
         (size_of(operand.type) == 2 || access_of(operand).along == Along::k);
}

bool through_registers(MatrixForm const& a, Index m, Index k, Index batch) {
  return size_of(a.type) == 4 && access_of(a).along == Along::mn &&
         (a.by_threads || (tma_takes(a, m, k) && (batch == 1 || a.batch_stride != 0)));
}

Along wgmma_direction(MatrixForm const& operand, Index depth) {
  return size_of(operand.type) == 2 && depth > 1 ? access_of(operand).along : Along::k;
}

bool stores_by_tma(GemmPolicy const& policy, CanonicalGemm const& form) {
  // A TMA store writes full 16-byte units, even if a row ends within one (seen on an H200).
  bool const along_m = direction_of_result(form) == Along::mn;
  bool const whole_units = (along_m ? form.m : form.n) * size_of(form.d.type) % 16 == 0;
  // The boxes of a TMA store need rows of at least 32 bytes, in multiples of 16.
  int const size = size_of(form.d.type);
  int const row = along_m ? tensor_store_rows : columns_of_store(policy.warp_n / policy.cluster_k, size);
  bool const wide_rows = row * size >= 32 && row * size % 16 == 0;
  return policy.multiply == Multiply::wgmma && whole_units && wide_rows &&
         policy.epilogue == EpilogueSchedule::direct &&
         (along_m || form.d.column_stride == 1 || form.n == 1) &&
         tma_violation("", form.d, form.m, form.n, !along_m).empty() &&
         (form.batch == 1 || form.by_pointers || form.d.batch_stride != 0);
}

namespace {

struct Tiles {
  char const* name;
  int block_m, block_n, warp_m, stages, cluster_m, cluster_k, blocks;
  bool ping_pong = false;
  int cluster_n = 1;
};

NamedPolicy policy_of(Tiles const& tiles, int element_bytes) {
  GemmPolicy policy;
  policy.block_m = tiles.block_m;
  policy.block_n = policy.warp_n = tiles.block_n;
  policy.block_k = step_bytes / element_bytes;
  policy.warp_m = tiles.warp_m;
  policy.thread_m = tiles.warp_m / 8;
  policy.thread_n = tiles.block_n / 4;
  policy.stages = tiles.stages;
  policy.cluster_m = tiles.cluster_m;
  policy.cluster_n = tiles.cluster_n;
  policy.cluster_k = tiles.cluster_k;
  policy.blocks = tiles.blocks;
  policy.ping_pong = tiles.ping_pong;
  policy.main_loop = MainLoop::warp_specialized;
  policy.multiply = Multiply::wgmma;
  return {tiles.name, policy};
}

}  // namespace

namespace {

std::vector<NamedPolicy> basic_policies(int element_bytes) {
  // Measured on an H200 (docs/decisions/0004): a multiprocessor loads 60 bytes per clock, so tiles smaller
  // than 128x128 wait for their operands; two blocks of a cluster share the tile of B. If there are few
  // tiles, a cluster shares one along k.
  constexpr Tiles all[] = {{"small", 64, 64, 16, 5, 1, 1, 2},         {"medium", 128, 128, 16, 6, 1, 1, 1},
                           {"large", 128, 128, 32, 6, 2, 1, 1, true}, {"tall", 128, 64, 16, 8, 1, 1, 1},
                           {"wide", 64, 128, 16, 8, 1, 1, 1},         {"huge", 128, 256, 16, 4, 2, 1, 1},
                           {"vast", 128, 256, 16, 4, 1, 1, 1},        {"thin", 64, 32, 16, 6, 1, 1, 2},
                           {"narrow", 128, 32, 16, 10, 1, 1, 1},      {"deep", 64, 64, 16, 10, 1, 1, 1},
                           {"thin_pair", 64, 32, 16, 12, 1, 2, 1},    {"deep_pair", 64, 64, 16, 10, 1, 2, 1},
                           {"wide_pair", 64, 128, 16, 7, 1, 2, 1},    {"tall_pair", 128, 64, 16, 7, 1, 2, 1},
                           {"medium_pair", 128, 128, 16, 4, 1, 2, 1}, {"thin_four", 64, 32, 16, 12, 1, 4, 1},
                           {"deep_four", 64, 64, 16, 10, 1, 4, 1},    {"tall_four", 128, 64, 16, 7, 1, 4, 1},
                           {"deep_eight", 64, 64, 16, 10, 1, 8, 1}};
  std::vector<NamedPolicy> list;
  list.reserve(64);  // with those that are added to them
  for (Tiles const& tiles : all) list.push_back(policy_of(tiles, element_bytes));
  return list;
}

// Tiles named by their extents: 96, 160 or 192 columns may leave none outside D, three warpgroups fill
// multiprocessors that powers of two leave idle, 16 columns suffice for few filters, and 256 rows read the
// filters less often.
constexpr Tiles of_any_extents[] = {
    {"128x16", 128, 16, 16, 11, 1, 1, 1},  {"128x96", 128, 96, 16, 7, 1, 1, 1},
    {"128x160", 128, 160, 16, 5, 1, 1, 1}, {"128x192", 128, 192, 16, 4, 1, 1, 1},
    {"192x96", 192, 96, 16, 5, 1, 1, 1},   {"192x128", 192, 128, 16, 4, 1, 1, 1},
    {"192x160", 192, 160, 16, 4, 1, 1, 1}, {"192x192", 192, 192, 16, 4, 1, 1, 1},
    {"256x96", 256, 96, 32, 4, 1, 1, 1},   {"256x128", 256, 128, 32, 4, 1, 1, 1}};

}  // namespace

std::vector<NamedPolicy> warpgroup_policies(int element_bytes, DataType sum) {
  // Named by their tiles, measured on an H100 (docs/decisions/0040): 16 columns suffice for few rows of D;
  // with fewer stages, the whole tile has a store buffer.
  constexpr Tiles by_extents[] = {{"192x128_pair", 192, 128, 16, 4, 1, 1, 1, false, 2},
                                  {"192x32", 192, 32, 16, 7, 1, 1, 1},
                                  {"192x16", 192, 16, 16, 8, 1, 1, 1},
                                  {"64x16", 64, 16, 16, 10, 1, 1, 2},
                                  {"large_stores", 128, 128, 32, 4, 2, 1, 1, true},
                                  {"64x96", 64, 96, 16, 9, 1, 1, 1},
                                  {"64x96_pair", 64, 96, 16, 8, 1, 2, 1},
                                  {"64x160_pair", 64, 160, 16, 6, 1, 2, 1}};
  std::vector<NamedPolicy> list = basic_policies(element_bytes);
  for (Tiles const& tiles : of_any_extents) list.push_back(policy_of(tiles, element_bytes));
  for (Tiles const& tiles : by_extents) list.push_back(policy_of(tiles, element_bytes));
  // A warpgroup's sums of 128x256 in f16 take 128 registers.
  if (sum == DataType::f16) list.push_back(policy_of({"256x256", 256, 256, 32, 3, 2, 1, 1}, element_bytes));
  return list;
}

namespace {

bool is_large(Index block_m, Index block_n) { return block_m * block_n > Index{128} * 256; }

// With as many stages as fit in addition to a store buffer: for the whole tile or, if it is large, for one
// box per warp.
NamedPolicy tile_of(int block_m, int block_n, int cluster_m, int cluster_n, int element_bytes,
                    int result_bytes) {
  NamedPolicy named =
      policy_of({"", block_m, block_n, block_m > 192 ? 32 : 16, 2, cluster_m, 1, 1}, element_bytes);
  int const buffer = is_large(block_m, block_n) ? named.policy.consumer_warps() * tensor_store_rows *
                                                      columns_of_store(block_n, result_bytes) * result_bytes
                                                : block_m * block_n * std::min(result_bytes, 2);
  int const stage = (block_m + block_n) * step_bytes;
  named.policy.stages = std::clamp((max_shared_bytes - buffer) / stage, 2, 12);
  named.policy.cluster_n = cluster_n;
  named.name = fmt::format("{}x{}", block_m, block_n);
  if (cluster_m * cluster_n > 1) named.name += fmt::format("_{}x{}", cluster_m, cluster_n);
  return named;
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

namespace {

// The least number of columns, in whole units, with which at most `tiles_n` tiles cover D.
Index fitted_columns(CanonicalGemm const& form, Index tiles_m, Index tiles_n, int cluster_m) {
  int const result = size_of(form.d.type);
  bool const along_n = access_of(form.b).along == Along::mn;
  Index const least = ceiling_divide(form.n, tiles_n);
  bool const in_sixteens = (tiles_m > 1 && least > 64) || result >= 4;
  // Short rows of an N-major B are loaded slowly: full ones, unless B is much smaller than A, or A is so
  // small that memory limits the product.
  constexpr Index much = 16, few_rows = 64;
  int const row_bytes = form.m >= much * form.n ? 32 : form.m <= few_rows ? 64 : step_bytes;
  int const least_unit = along_n ? row_bytes / size_of(form.b.type) : in_sixteens ? 16 : 8;
  int const unit =
      std::max(columns_unit(size_of(form.a.type), form.sum, form.of_pieces) * cluster_m, least_unit);
  return ceiling_divide(least, unit) * unit;
}

// Leaves as many stages as fit in addition to what the epilogue needs.
void reduce_stages(GemmPolicy& policy, CanonicalGemm const& form, Gpu const& gpu, EpilogueSchedule epilogue) {
  GemmPolicy stored = policy;
  stored.epilogue = stores_by_tma(policy, form) ? epilogue : EpilogueSchedule::staged;
  int const stage = (policy.block_m + policy.block_n) * step_bytes;
  if (int const excess = warp_specialized_shared_bytes(stored, form) - gpu.shared_bytes_per_block; excess > 0)
    policy.stages -= (excess + stage - 1) / stage;
}

}  // namespace

std::vector<NamedPolicy> fitted_policies(CanonicalGemm const& form, Gpu const& gpu,
                                         EpilogueSchedule epilogue) {
  struct Height {
    int block_m, max_columns;
  };
  bool const promotes = form.of_pieces || (is_float8(form.a.type) && !form.fast_sums);
  Height const heights[] = {{64, 224}, {128, 256}, {192, 192}, {256, promotes ? 128 : 192}};
  // Two blocks that share a tile of B or of A read it from L2 once: of 24 products in 16 bits on an H200,
  // some took up to 1.5 times as long without (docs/decisions/0045).
  struct Cluster {
    int m, n;
  };
  constexpr Cluster clusters[] = {{1, 1}, {2, 1}, {1, 2}};
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
  for (Height const& height : heights)
    for (auto const& [cluster_m, cluster_n] : clusters)
      for (int rounds = 1; rounds <= 2; ++rounds) {
        bool const shares = cluster_m * cluster_n > 1;
        if (!any_cluster && (cluster_m != (pair_of_rows(height.block_m) ? 2 : 1) || cluster_n > 1)) continue;
        Index const tiles_m =
            ceiling_divide(form.m, Index{height.block_m} * cluster_m) * cluster_m * form.batch;
        Index const tiles_n =
            tiles_m > 0 ? Index{gpu.multiprocessors} * rounds / (tiles_m * cluster_n) * cluster_n : 0;
        if (tiles_n == 0) continue;
        Index const columns = fitted_columns(form, tiles_m, tiles_n, cluster_m);
        if (columns < 16 || columns > height.max_columns) continue;
        // A single tile of A or B is small, and stays in L2; and there is no second block for it.
        if (any_cluster && shares && (form.m <= height.block_m || columns >= form.n)) continue;
        NamedPolicy tile = tile_of(height.block_m, to_int(columns), cluster_m, cluster_n, size, result);
        reduce_stages(tile.policy, form, gpu, epilogue);
        if (tile.policy.stages < least_stages(height.block_m, columns) || has_policy(list, tile.name))
          continue;
        tile.is_fitted = true;
        if (tiles_m > 1 && !is_large(height.block_m, columns)) tile.share = 0.95;
        list.push_back(std::move(tile));
      }
  return list;
}

void append_tiles(std::vector<NamedPolicy>& list, CanonicalGemm const& form, Gpu const& gpu,
                  EpilogueSchedule epilogue, std::vector<std::string> const& names) {
  for (std::string const& name : names)
    if (auto tile = tile_named(name, size_of(form.a.type), size_of(form.d.type));
        tile && !has_policy(list, name)) {
      reduce_stages(tile->policy, form, gpu, epilogue);
      list.push_back(*std::move(tile));
    }
  if (!names.empty()) return;
  std::vector<NamedPolicy> fitted = fitted_policies(form, gpu, epilogue);
  std::erase_if(fitted, [&](NamedPolicy const& tile) {
    return std::any_of(list.begin(), list.end(), [&](NamedPolicy const& known) {
      GemmPolicy const &p = known.policy, &q = tile.policy;
      return p.block_n == q.block_n && p.block_m == q.block_m && p.cluster_m == q.cluster_m &&
             p.cluster_n == q.cluster_n && p.cluster_k == q.cluster_k && !p.ping_pong;
    });
  });
  std::move(fitted.begin(), fitted.end(), std::back_inserter(list));
}

std::vector<NamedPolicy> window_policies(int element_bytes, bool one_tap) {
  // Tiles for few filters and short sums. In the ping-pong tiles ("turns") one warpgroup stores while the
  // other multiplies.
  constexpr Tiles more[] = {{"tall_turns", 128, 64, 32, 8, 1, 1, 1, true},
                            {"narrow_turns", 128, 32, 32, 9, 1, 1, 1, true},
                            {"tower", 256, 64, 32, 5, 1, 1, 1}};
  std::vector<NamedPolicy> list = basic_policies(element_bytes);
  if (one_tap) return list;
  for (Tiles const& tiles : of_any_extents) list.push_back(policy_of(tiles, element_bytes));
  for (Tiles const& tiles : more) list.push_back(policy_of(tiles, element_bytes));
  return list;
}

std::vector<NamedPolicy> phase_policies(int element_bytes) {
  return {policy_of({"phases", 128, 64, 16, 4, 1, 1, 1}, element_bytes)};
}

std::string warpgroup_policy_violation(GemmPolicy const& p, int element_bytes, DataType sum) {
  if (p.multiply != Multiply::wgmma) return "main loop warp_specialized requires multiply wgmma";
  if (int const bytes = p.block_k * element_bytes; bytes != step_bytes && bytes != 64 && bytes != 32)
    return fmt::format(
        "block_k = {}; a step of warp_specialized is 32, 64 or 128 bytes deep, here {}, {} or {}", p.block_k,
        32 / element_bytes, 64 / element_bytes, step_bytes / element_bytes);
  if (int const bytes = p.block_n * p.block_k * element_bytes; bytes % tile_bytes_unit != 0)
    return fmt::format(
        "block_n = {}, block_k = {}: a step of B has {} bytes; warp_specialized requires a multiple of {}",
        p.block_n, p.block_k, bytes, tile_bytes_unit);
  if (p.warp_m != 16 && p.warp_m != 32)
    return fmt::format("warp_m = {}; a warp of a warpgroup has 16 or 32 rows", p.warp_m);
  if (p.thread_m * 8 != p.warp_m || p.thread_n * 4 != p.warp_n)
    return fmt::format(
        "multiply wgmma needs thread_m = warp_m / 8 and thread_n = warp_n / 4; the warp tile is {}x{}, the "
        "thread's {}x{}",
        p.warp_m, p.warp_n, p.thread_m, p.thread_n);
  if (p.block_m % (4 * p.warp_m) != 0 || p.block_n % p.warp_n != 0)
    return fmt::format("a warpgroup's tile is {}x{}; the block's, {}x{}, is not a multiple of it",
                       4 * p.warp_m, p.warp_n, p.block_m, p.block_n);
  int const unit = columns_unit(element_bytes, sum, p.promotes);
  if (p.warp_n < 16 || p.warp_n > 256 || p.warp_n % unit != 0 || p.block_m > 256 || p.block_n > 256)
    return fmt::format(
        "warp_n = {} of a block tile of {}x{}; valid values: multiples of {} from 16 to 256, in a block tile of "
        "at most 256x256",
        p.warp_n, p.block_m, p.block_n, unit);
  int const groups = p.consumer_warps() / 4;
  if (p.ping_pong ? groups != 2 : groups > 3)
    return fmt::format("{} warpgroups; ping_pong requires two, each with its own tile; otherwise at most 3",
                       groups);
  // Two sums in f16 share a register; promotion keeps those of a step, too.
  bool const promotes = p.promotes || (element_bytes == 1 && sum == DataType::f32 && !p.fast_sums);
  int const max_sums = (groups == 3 ? 96 : promotes ? 128 : 192) * (sum == DataType::f16 ? 2 : 1);
  if (p.thread_m * p.thread_n > max_sums)
    return fmt::format("{} accumulators per thread; registers hold at most {}", p.thread_m * p.thread_n,
                       max_sums);
  if (p.stages < 2 || p.stages > 16)
    return fmt::format("stages = {}; valid values for warp_specialized: 2 to 16", p.stages);
  if (p.cluster_m * p.cluster_n > max_cluster_blocks || p.block_n % (8 * p.cluster_m) != 0 ||
      p.block_m % (8 * p.cluster_n) != 0)
    return fmt::format(
        "a cluster of {}x{} blocks; it may have at most {}, each with a multiple of 8 rows of the shared tiles",
        p.cluster_m, p.cluster_n, max_cluster_blocks);
  if (!is_cluster_k(p.cluster_k))
    return fmt::format("cluster_k = {}; valid values: powers of two up to {}", p.cluster_k,
                       max_cluster_blocks);
  if (p.cluster_k > 1 && (p.cluster_m * p.cluster_n != 1 || p.block_n != p.warp_n || p.ping_pong ||
                          p.warp_n % (8 * p.cluster_k) != 0))
    return fmt::format(
        "cluster_k = {} with clusters of {}x{} and warp_n = {}; it requires 1x1, warp_n = block_n, a multiple "
        "of 8 columns for each block, and no ping_pong",
        p.cluster_k, p.cluster_m, p.cluster_n, p.warp_n);
  if (int const slice = p.warp_n / p.cluster_k;
      p.cluster_k > 1 && sum == DataType::f16 && slice % 16 != 0 && slice != 8)
    return fmt::format(
        "cluster_k = {} with warp_n = {}: with sums in f16, a block's slice of {} columns must be 8 or a "
        "multiple of 16",
        p.cluster_k, p.warp_n, slice);
  return {};
}

std::string columns_violation(GemmPolicy const& p, Along b, int element_bytes) {
  if (b == Along::k) return {};
  if (p.warp_n % 16 != 0)
    return fmt::format("warp_n = {}; it must be a multiple of 16 where columns of B are contiguous",
                       p.warp_n);
  int const row = tensor_box(b, element_bytes, p.block_k, p.block_n, p.cluster_m).row;
  if (p.warp_n != p.block_n && p.warp_n % row != 0)
    return fmt::format("warp_n = {}; it must be block_n = {} or a multiple of {}, a row of a box of B",
                       p.warp_n, p.block_n, row);
  return {};
}

bool is_half_empty(GemmPolicy const& p, CanonicalGemm const& form) {
  // TMA fills rows of an N-major B slowly (8x32064x3072 on an H200).
  int const least_columns = access_of(form.b).along == Along::mn ? 16 : 32;
  bool const rows = p.block_m > 64 && form.m <= p.block_m / 2,
             columns = p.block_n > least_columns && form.n <= p.block_n / 2;
  return (rows || columns) && form.k > p.block_k;
}

void shorten_steps(GemmPolicy& policy, CanonicalGemm const& form) {
  if (size_of(form.a.type) != 2 || form.a.by_threads || form.b.by_threads) return;
  while (policy.block_k > 16 && form.k * 2 <= policy.block_k &&
         policy.block_n * policy.block_k % tile_bytes_unit == 0)  // bytes of half a step
    policy.block_k /= 2;
}

TensorStore tensor_store_of(GemmPolicy const& p, CanonicalGemm const& form) {
  int const taken =
      p.cluster_k > 1 ? 228 * 1024 : p.stages * p.block_k * size_of(form.a.type) * (p.block_m + p.block_n);
  return tensor_store(p.warp_m, p.warp_n / p.cluster_k, p.consumer_warps(), size_of(form.d.type), taken,
                      p.blocks);
}

int warp_specialized_shared_bytes(GemmPolicy const& p, CanonicalGemm const& form) {
  // Each tile is aligned to 1024 bytes.
  auto const tile_bytes = [&](int rows) {
    return (p.block_k * size_of(form.a.type) * rows + 1023) / 1024 * 1024;
  };
  int const stages = p.stages * (tile_bytes(p.block_m) + tile_bytes(p.block_n));
  // The bytes of one row of sums in the staged epilogue: a part of the columns of a warp, or of its share of
  // them in a cluster along k.
  int const pass =
      part_of_row(p.warp_n / p.cluster_k, size_of(form.evaluation)) * size_of(form.evaluation) + 32;
  int const epilogue = p.epilogue == EpilogueSchedule::staged ? p.consumer_warps() * tensor_store_rows * pass
                       : stores_by_tma(p, form)               ? tensor_store_of(p, form).bytes
                                                              : 8;
  int const barriers = p.stages * 16;
  // The sums of a tile, and barriers.
  int const parts = p.cluster_k > 1 ? p.block_m * p.block_n * size_of(form.sum) + 32 : 0;
  return (stages + epilogue + parts + barriers + 1023) / 1024 * 1024;
}

Index tiles_of_clusters(GemmPolicy const& p, CanonicalGemm const& form) {
  auto const tiles = [](Index extent, int block, int cluster) {
    return (extent + block * cluster - 1) / (block * cluster) * cluster;
  };
  return tiles(form.m, p.block_m, p.cluster_m) * tiles(form.n, p.block_n, p.cluster_n);
}

// Multiprocessors are organized in GPCs, which clusters of more than two blocks do not fill completely: on an
// H200 with 132 multiprocessors, 30 clusters of four blocks or 15 of eight are resident.
Index resident_clusters(GemmPolicy const& p, Gpu const& gpu) {
  Index const cluster = p.cluster();
  Index const multiprocessors = cluster > 2 ? gpu.multiprocessors * Index{10} / 11 : gpu.multiprocessors;
  return std::max(Index{1}, multiprocessors * p.blocks / cluster) * cluster;
}

}  // namespace cosmati::plan
