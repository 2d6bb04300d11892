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
  if (!one && other == 0)
    return fmt::format("operand {}: rows or columns with a stride of 0; TMA reads only whole matrices again",
                       name);
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

int columns_unit(int element_bytes, DataType sum, bool promotes) {
  return sum == DataType::f32 && element_bytes != 1 && !promotes ? 8 : 16;
}

std::string tma_violation(CanonicalGemm const& form) {
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
  // Coordinates of elements are signed integers of 32 bits, and tiles end beyond D.
  constexpr Index most = max_int - 256;
  if (Index const extent = std::max({form.m, form.n, form.k}); extent > most)
    return fmt::format("an extent of {}; multiply wgmma supports at most {}", extent, most);
  std::string const sentence = tma_violation(form);
  if (!sentence.empty() || size_of(form.a.type) == 2) return sentence;
  for (MatrixForm const* operand : {&form.a, &form.b})
    if (access_of(*operand).along == Along::mn &&
        !(operand == &form.a && through_registers(form.a, form.m, form.k)))
      return fmt::format("multiply wgmma requires {} contiguous along k; operand {} is contiguous along {}",
                         name_of(operand->type), (operand == &form.a) == form.swapped ? 'b' : 'a',
                         (operand == &form.a) == form.swapped ? 'n' : 'm');
  return {};
}

bool wgmma_takes_operand(MatrixForm const& operand, Index outer, Index depth) {
  return tma_takes(operand, outer, depth) &&
         (size_of(operand.type) == 2 || access_of(operand).along == Along::k);
}

bool through_registers(MatrixForm const& a, Index m, Index k) {
  return size_of(a.type) == 4 && access_of(a).along == Along::mn && (a.by_threads || tma_takes(a, m, k));
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

GemmPolicy warpgroup_policy(int block_m, int block_n, int warp_m, int stages, int element_bytes) {
  GemmPolicy policy;
  policy.block_m = block_m;
  policy.block_n = policy.warp_n = block_n;
  policy.block_k = step_bytes / element_bytes;
  policy.warp_m = warp_m;
  policy.thread_m = warp_m / 8;
  policy.thread_n = block_n / 4;
  policy.stages = stages;
  policy.main_loop = MainLoop::warp_specialized;
  policy.multiply = Multiply::wgmma;
  return policy;
}

namespace {

struct Tiles {
  char const* name;
  int block_m, block_n, warp_m, stages, cluster_m, cluster_k, blocks;
  bool ping_pong = false;
  int cluster_n = 1;
};

NamedPolicy policy_of(Tiles const& tiles, int element_bytes) {
  GemmPolicy policy =
      warpgroup_policy(tiles.block_m, tiles.block_n, tiles.warp_m, tiles.stages, element_bytes);
  policy.cluster_m = tiles.cluster_m;
  policy.cluster_n = tiles.cluster_n;
  policy.cluster_k = tiles.cluster_k;
  policy.blocks = tiles.blocks;
  policy.ping_pong = tiles.ping_pong;
  return {tiles.name, policy};
}

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

std::string boxes_violation(GemmPolicy const& p, int element_bytes) {
  int const row = tensor_box(Along::mn, element_bytes, p.block_k, p.block_n, 1).row;
  if (p.block_n % row == 0) return {};
  return fmt::format("block_n = {}; {} columns of B are loaded at a time, which must divide it", p.block_n,
                     row);
}

std::string slices_violation(GemmPolicy const& p, Along a, Along b, int element_bytes) {
  struct Operand {
    char const* name;
    Along along;
    int outer, blocks;
  };
  for (Operand const& one :
       {Operand{"a", a, p.block_m, p.cluster_n}, Operand{"b", b, p.block_n, p.cluster_m}}) {
    TensorBox const box = tensor_box(one.along, element_bytes, p.block_k, one.outer, one.blocks);
    if (!box.by_boxes && (box.rows % one.blocks != 0 || box.slice_rows % 8 != 0))
      return fmt::format(
          "{} blocks of a cluster share a step of {}, {}x{} elements, which they cannot divide equally",
          one.blocks, one.name, one.outer, p.block_k);
  }
  return {};
}

bool is_half_empty(GemmPolicy const& p, CanonicalGemm const& form) {
  // TMA fills rows of an N-major B slowly (8x32064x3072 on an H200).
  bool const rows = p.block_m > 64 && form.m <= p.block_m / 2,
             columns = p.block_n > 16 && form.n <= p.block_n / 2 &&
                       (p.block_n > 32 || access_of(form.b).along == Along::mn);
  bool const blocks = (p.cluster_m > 1 && form.m <= p.block_m * p.cluster_m / 2) ||
                      (p.cluster_n > 1 && form.n <= p.block_n * p.cluster_n / 2);
  return blocks || ((rows || columns) && (form.k > p.block_k || form.batch > 1));
}

void shorten_steps(GemmPolicy& policy, CanonicalGemm const& form) {
  if (size_of(form.a.type) != 2 || form.a.by_threads || form.b.by_threads) return;
  while (policy.block_k > 16 && form.k * 2 <= policy.block_k &&
         policy.block_n * policy.block_k % tile_bytes_unit == 0)  // bytes of half a step
    policy.block_k /= 2;
}

int bytes_of_stage(GemmPolicy const& p, CanonicalGemm const& form) {
  auto const bytes = [&](MatrixForm const& operand, int outer) {
    int const size = size_of(form.a.type);
    TensorBox const box = tensor_box(access_of(operand).along, size, p.block_k, outer, 1);
    return (bytes_of_boxes(box, size) + tile_bytes_unit - 1) / tile_bytes_unit * tile_bytes_unit;
  };
  return bytes(form.a, p.block_m) + bytes(form.b, p.block_n);
}

TensorStore tensor_store_of(GemmPolicy const& p, CanonicalGemm const& form) {
  int const taken = p.cluster_k > 1 ? 228 * 1024 : p.stages * bytes_of_stage(p, form);
  return tensor_store(p.warp_m, p.warp_n / p.cluster_k, p.consumer_warps(), size_of(form.d.type), taken,
                      p.blocks);
}

int warp_specialized_shared_bytes(GemmPolicy const& p, CanonicalGemm const& form) {
  int const stages = p.stages * bytes_of_stage(p, form);
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

Index multiprocessors_of_clusters(int blocks, Gpu const& gpu) {
  return blocks > 2 ? gpu.multiprocessors * Index{10} / 11 : gpu.multiprocessors;
}

Index resident_clusters(GemmPolicy const& p, Gpu const& gpu) {
  int const cluster = p.cluster();
  return std::max(Index{1}, multiprocessors_of_clusters(cluster, gpu) * p.blocks / cluster) * cluster;
}

}  // namespace cosmati::plan
