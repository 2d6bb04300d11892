// The predicted time of a product by the main loop warp_specialized.
#include <algorithm>
#include <cmath>

#include "cosmati/gemm/steps.h"
#include "src/plan/buffers.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

// The constants of the prediction. Those marked (H100) were fitted to 320 measurements of 37 problems on an
// H100 (docs/decisions/0040). The others were fitted earlier to 2600 measurements of 33 problems with 27
// policies and up to 6 splits on an H200, unless a comment says that they are predicted, or where they were
// measured. Those marked (16 bits) were fitted to 650 measurements of 170 products in f16 and bf16 on an H200
// (docs/decisions/0045) and apply to products of 16-bit types; fit_of_others has the values before.
struct Fit {
  double launch_seconds = 2.15e-6;
  // Less for products of a single round with many stages of one block, which are all loaded at once (12
  // products of 3 to 9 us with six policies on an H200; docs/decisions/0045).
  double many_stages_seconds = 0.5e-6;
  // More for clusters that share operands, and the share of loading a shared operand that they save. (16
  // bits)
  double cluster_seconds = 0.3e-6, saved_by_sharing = 0.05;
  // Clusters of four were faster than predicted without these factors: of 79 products whose plan 0.95
  // changed, 53 became faster, by 5.5 % on average, and 21 in clusters of 4x1 and 1x4 by another 5 % with
  // 0.92 (H200; docs/decisions/0045). Tiles of few steps have little to share: 2048x2048x2 took 7.3 us, in
  // single blocks 4.7.
  double of_square_of_four = 0.95, of_row_of_four = 0.92;
  // In batches: how much longer writing takes with twice as many loads for each element (H200: 2048x2048x128,
  // 64 matrices, by 15 policies; 128x256 in pairs took 2 to 6 % less than alone in ten batches with short k).
  double write_slowed_by_loads = 0.2;
  double not_overlapped = 0.33;  // share of loading or multiplying, the shorter of the two

  // Multiplying: shares of the tensor cores' rate. One warpgroup does not saturate them, nor do two in
  // ping-pong that wait for promoted sums.
  double share_of_peak = 0.84;  // (16 bits)
  double alone = 0.9;           // (16 bits)
  double ping_pong = 0.98, promoting_ping_pong = 0.62;
  double single_turn = 0.88;  // of ping-pong, if a block has one tile (H100: 3136x512x2048)
  // The products of a tile are added one after another: clocks per 32 bytes of k, however few columns they
  // have (2x6144x4096 and 16x9216x3072 by 64x16 and 128x16 on an H200).
  double clocks_of_pack = 50;
  // From the load of a stage until its products can begin, with a cold L2 cache: with few stages, steps wait
  // for it (64x64, 5 and 10 stages, ten products of 3 to 9 us on an H200; docs/decisions/0045).
  double stage_seconds = 0.95e-6;
  double tile_seconds = 0.06e-6;
  // M-major A of 32-bit elements through registers: shares of the rate at 4096^3, where ping-pong 128x128
  // took 530 us, cooperative 128x256 380 us.
  double through_registers = 0.97, through_registers_ping_pong = 0.68;
  // The power limit under sustained load (H100): at 10240x4096x4096, tiles of 128x128 took 533 us, 128x256
  // 447 us, and 256x256 with sums in f16 429 us.
  double power_seconds = 200e-6;  // beyond which the limit applies fully
  double power = 0.35, power_of_loads = 0.1, power_of_reads = 0.2, min_power = 0.2, max_power = 0.8;
  double power_of_sharing = 0.5;  // saved by reading a shared tile from L2 once (2048x32000x2048 on an H200)

  // Operands by TMA: bytes per clock and multiprocessor, and the share that is left if rows begin within
  // sectors of 32 bytes of L2, of which each touches one more (1000x2000x3000 on an H200), or within its
  // lines of 128 bytes (24 products with 15 policies each; docs/decisions/0045).
  double intake = 60, intake_of_cluster = 68;  // (16 bits)
  double within_sectors = 0.52, within_sectors_of_cluster = 0.66;
  double within_lines = 0.91, within_lines_of_cluster = 1;  // (16 bits)
  double clocks_of_missing_row = 4;                         // (16 bits)
  double missing_of_last = 0.5;  // share for the last tile, if there are others (16 bits)
  // Rows of less than 128 bytes (H100, docs/decisions/0040); those of 64 bytes took at most 8 clocks.
  double clocks_of_half_row = 4, clocks_of_short_row = 13;
  // Rows of windows and of their filter, of 64 bytes (H200: 1.9 to 3.1) and of 32 (H200: 1.6).
  double clocks_of_half_window = 2.2, clocks_of_short_window = 1.6;
  // A row of a box of an MN-major operand, however short: columns that are not a multiple of 64 are copied in
  // boxes of 32 to 8 (256x6144x4096 and 1024x1280x5120 on an H200). (16 bits)
  double clocks_of_box_row = 1.2;
  // Operands loaded by threads, in clocks of a warp: measured at 4096^3 (12 to 16 per copy), and shifts for
  // rows of 17 and 255 elements of two bytes (H200).
  double clocks_of_copy = 14, clocks_of_shift = 74, clocks_of_wait = 700.0 / (4 * 4);

  // Storing a tile: the rate of a multiprocessor when all store at the same time. If D is M-major, a warp
  // writes 16 adjacent elements, half a cache line.
  double store_seconds = 0.53e-6, store_rate = 68e9, store_rate_along_m = 32e9;  // (16 bits)
  double staged_seconds = 0.35e-6;  // a tile through shared memory (H200)
  double waits_for_buffer = 1.4;    // (H100)
  // Ping-pong with no more stages than steps: 4 stages took 12 % longer than 6 (4096x32768x512 on an H200).
  double few_stages = 1.1;
  double missing_rate = 23.4e9, not_hidden = 0.25;  // elements that do not exist (H100)

  // Memory: the bytes in flight needed for the full rate, expressed as a latency, and the share of that rate
  // that is reached (H100); the share for results.
  double latency_seconds = 1.2e-6, share_of_loads = 0.92, share_of_stores = 0.67;
  // Fitted to 2900 measurements of 163 products in bf16 on an H200 (docs/decisions/0040): the rate of the
  // loads of one multiprocessor, and the cost of reading the larger operand again, relative to its first
  // reading.
  double multiprocessor_rate = 36e9, read_again = 0.4;
  double shared_less = 0.07;  // of the operands of streamed tiles, which blocks load separately (H100)
  double bytes_in_l2 = 16e6;  // partial sums that fit in the L2 cache

  // Adding parts: in a cluster, exchange_seconds (H100); otherwise by flags and slots. handed_on was measured
  // including a fill of counters (2.5 us), which flags do not need.
  double exchange_seconds = 0.6e-6, exchange_rate = 57e9;
  double slot_seconds = 0.12e-6, slot_rate = 97e9, handed_on = 2.6e-6;
};
constexpr Fit fit_of_16_bits;
// Convolutions and products of other types.
constexpr Fit fit_of_others = [] {
  Fit fit;
  fit.cluster_seconds = fit.saved_by_sharing = fit.power_of_sharing = fit.write_slowed_by_loads = 0;
  fit.of_square_of_four = fit.of_row_of_four = 1;
  fit.share_of_peak = 0.97, fit.alone = 0.68, fit.clocks_of_pack = 0;
  fit.intake = 55.4, fit.intake_of_cluster = 61;
  fit.within_sectors = fit.within_sectors_of_cluster = 0.64;
  fit.within_lines = fit.within_lines_of_cluster = 0.64;
  fit.clocks_of_missing_row = 5, fit.missing_of_last = 0.6, fit.clocks_of_box_row = 0;
  fit.store_seconds = 0.46e-6, fit.store_rate_along_m = 55e9;
  return fit;
}();
Fit const& fit_of(CanonicalGemm const& form, Volume const& volume) {
  return volume.of_windows || size_of(form.a.type) != 2 ? fit_of_others : fit_of_16_bits;
}

constexpr double shared_rate = 128;  // bytes per clock from shared memory

bool is_shifted(OperandAccess const& access, int size) {
  return access.by_threads && access.width * size < 4;
}

// Clocks per step if threads load an operand: with a warp's cp.async, or with aligned 16-byte loads, which
// are shifted in registers and waited for four at a time.
double copy_clocks(Fit const& fit, OperandAccess const& access, int rows, int size) {
  if (!access.by_threads) return 0;
  double const bytes = static_cast<double>(rows) * step_bytes;  // copies by threads have full steps
  if (is_shifted(access, size)) return bytes / (32 * 16) * (fit.clocks_of_shift + fit.clocks_of_wait);
  return bytes / (32 * std::min(access.width * size, 16)) * fit.clocks_of_copy;
}

// The time that a block takes to add another block's part of a tile.
double seconds_of_slot(Fit const& fit, GemmRecipe const& recipe) {
  double const sums = static_cast<double>(recipe.policy.block_m) * recipe.policy.block_n;
  return fit.slot_seconds + sums / recipe.policy.cluster_k * size_of(recipe.sum) / fit.slot_rate;
}

// The share of a cost that is left if `sharing` blocks load an operand together: `saved` is what an unlimited
// number of blocks would save.
double share_left(double saved, int sharing) { return 1 - saved * (1 - 1.0 / sharing); }

// Small tiles load their operands more often, from L2 and for each wgmma from shared memory, and draw more
// power. `share`: the share of the tensor cores' rate that is used, on which the power depends.
double limited_by_power(Fit const& fit, double seconds, GemmPolicy const& p, double share = 1) {
  auto const load = [&](int extent, int sharing) {
    return 128.0 / extent * share_left(fit.power_of_sharing, sharing);
  };
  double const loads = load(p.block_m, p.cluster_m) + load(p.block_n, p.cluster_n), reads = 128.0 / p.warp_n;
  double const slower = fit.power + fit.power_of_loads * (loads - 1.5) + fit.power_of_reads * (reads - 0.5);
  return seconds * (1 + share * std::clamp(slower, fit.min_power, fit.max_power) *
                            std::min(1.0, seconds / fit.power_seconds));
}

// The lines that TMA loads of a tile of an operand, of which `sharing` blocks load a slice each; windows and
// groups fill all lines.
int loaded_lines(Along along, int block, int sharing, Index extent, Volume const& volume) {
  if (volume.of_windows || volume.of_group) return block;
  TensorBox box{};
  box.rows = block, box.slice_rows = block / sharing;
  return lines_of_copy(box, along, extent) * sharing;
}
int lines_of_a(GemmRecipe const& recipe, CanonicalGemm const& form, Volume const& volume) {
  GemmPolicy const& p = recipe.policy;
  return loaded_lines(recipe.a.along, p.block_m, p.cluster_n, form.m, volume);
}
int lines_of_b(GemmRecipe const& recipe, CanonicalGemm const& form, Volume const& volume) {
  GemmPolicy const& p = recipe.policy;
  return loaded_lines(recipe.b.along, p.block_n, p.cluster_m, form.n, volume);
}

double share_of_cluster(Fit const& fit, GemmPolicy const& p, Volume const& volume) {
  constexpr Index few_steps = 4;
  if (p.cluster_m * p.cluster_n != 4 || volume.steps <= few_steps) return 1;
  return p.cluster_m == p.cluster_n ? fit.of_square_of_four : fit.of_row_of_four;
}

double launch_seconds(Fit const& fit, GemmPolicy const& p, Volume const& volume, int splits, Gpu const& gpu) {
  constexpr int few = 5, many = 8, wide = 64;
  bool const hides = p.blocks == 1 && p.cluster_k == 1 && p.stages >= many && p.block_n >= wide &&
                     volume.tiles * splits <= gpu.multiprocessors && volume.steps > few * splits &&
                     !volume.of_windows && !volume.of_group;
  return fit.launch_seconds - (hides ? fit.many_stages_seconds : 0) +
         (p.cluster_m * p.cluster_n > 1 ? fit.cluster_seconds : 0);
}

// Bytes per clock and multiprocessor that TMA loads.
double rate_of_intake(Fit const& fit, GemmPolicy const& p, CanonicalGemm const& form) {
  auto const begin_at = [&](Index bytes) {
    auto const all = [&](MatrixForm const& operand) {
      Index const pitch = operand.column_stride == 1 ? operand.row_stride : operand.column_stride;
      return pitch * size_of(form.a.type) % bytes == 0;
    };
    return all(form.a) && all(form.b);
  };
  bool const shared = p.cluster_m * p.cluster_n > 1;
  double const share = begin_at(step_bytes)     ? 1
                       : begin_at(sector_bytes) ? (shared ? fit.within_lines_of_cluster : fit.within_lines)
                       : shared                 ? fit.within_sectors_of_cluster
                                                : fit.within_sectors;
  return share * (shared ? fit.intake_of_cluster : fit.intake);
}

class Prediction {
 public:
  Prediction(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu, Volume const& volume)
      : fit_(fit_of(form, volume)),
        recipe_(recipe),
        p_(recipe.policy),
        form_(form),
        gpu_(gpu),
        volume_(volume) {}

  double seconds() const {
    double const multiply = multiply_seconds(), load = load_seconds();
    double const slower = refills_few_stages() ? fit_.few_stages : 1.0;
    return share_of_cluster(fit_, p_, volume_) *
           (launch_seconds(fit_, p_, volume_, recipe_.splits, gpu_) +
            std::max(slower * (multiply + store_seconds(multiply)), load + write_seconds()) +
            fit_.not_overlapped * std::min(multiply, load) + exchange_seconds() + combine_seconds() +
            missing_seconds());
  }

 private:
  // Clocks of a step of one block: products, operands by TMA, or copies by threads, whichever takes longest.
  double step_clocks() const {
    // TMA fills rows beyond the edge of an operand with zeros, slowly.
    double const missing = missing_rows(form_.m, p_.block_m, lines_of_a_) +
                           (keeps_b() ? 0 : missing_rows(form_.n, p_.block_n, lines_of_b_));
    double const clocks = std::max(
        {block_ * p_.block_k / products_per_clock(), intake_clocks() + fit_.clocks_of_missing_row * missing,
         copy_clocks(fit_, recipe_.a, p_.block_m, size_) + copy_clocks(fit_, recipe_.b, p_.block_n, size_)});
    if (size_ != 4 || recipe_.a.along != Along::mn) return clocks;
    // If A passes through registers, it is loaded from shared memory by the warps rather than by wgmma, which
    // takes longer; all loads of a step also share the rate of shared memory. A warpgroup that multiplies
    // alone waits for its registers.
    double const share = p_.ping_pong ? fit_.through_registers_ping_pong : fit_.through_registers;
    double const columns = p_.warp_n, multiplies = block_ * p_.block_k / (64 * columns * 8);
    return std::max(clocks / share, multiplies * (64 + columns) * 32 / shared_rate);
  }
  // Whether a warpgroup's tile needs all stages while the other one stores.
  bool refills_few_stages() const {
    return p_.ping_pong && p_.stages < 6 && volume_.steps >= p_.stages && rounds_ > 1 &&
           !volume_.of_windows && !volume_.of_group;
  }
  // The rows missing from the last tile of an extent that TMA fills. In a single round, the other tiles wait
  // for it.
  double missing_rows(Index extent, Index block, int lines) const {
    Index const tiles = ceiling_divide(extent, block);
    auto const rows = static_cast<double>(tiles * block - extent);
    return tiles == 1 ? rows - static_cast<double>(block - lines)
                      : fit_.missing_of_last * (rounds_ <= 1 ? rows : rows / static_cast<double>(tiles));
  }
  // Whether B stays in shared memory: k is a single step, and there is one column of tiles.
  bool keeps_b() const { return volume_.steps <= 1 && p_.cluster_k == 1 && form_.n <= p_.block_n; }
  double intake_clocks() const {
    double const rows_of_b = keeps_b() ? 0 : lines_of_b_, bytes = depth_bytes();
    bool const half = std::min(bytes, static_cast<double>(form_.k) * size_) * 2 >= step_bytes;
    double const of_half = volume_.of_windows ? fit_.clocks_of_half_window : fit_.clocks_of_half_row,
                 of_short = volume_.of_windows ? fit_.clocks_of_short_window : fit_.clocks_of_short_row;
    double const row = bytes == step_bytes ? 0 : half ? of_half : of_short;
    // Clocks of a line. In a shallow step, only rows along k are short.
    auto const clocks = [&](Along along, int block) {
      TensorBox const box = tensor_box(along, size_, p_.block_k, block, 1);
      double const rows_of_line = static_cast<double>(box.rows) * box.boxes / block;
      if (along == Along::k) return std::max(bytes / intake(), row);
      return rows_of_line * std::max(box.row * size_ / intake(), fit_.clocks_of_box_row);
    };
    return share_left(fit_.saved_by_sharing, p_.cluster_n) * lines_of_a_ *
               clocks(recipe_.a.along, p_.block_m) +
           share_left(fit_.saved_by_sharing, p_.cluster_m) * rows_of_b * clocks(recipe_.b.along, p_.block_n);
  }
  double depth_bytes() const { return p_.block_k * size_; }  // of a step
  double products_per_clock() const {
    double products = 4096.0 / size_ * fit_.share_of_peak;
    if (p_.ping_pong)
      products *= (p_.promotes || (is_float8(form_.a.type) && !p_.fast_sums) ? fit_.promoting_ping_pong
                                                                             : fit_.ping_pong) *
                  (rounds_ <= 1 ? fit_.single_turn : 1);
    if (p_.consumer_warps() * together() <= 4) products *= fit_.alone;
    return products;
  }
  // The blocks of a multiprocessor that run at the same time.
  double together() const { return std::min<double>(p_.blocks, std::ceil(blocks_ / multiprocessors_)); }
  double intake() const { return rate_of_intake(fit_, p_, form_); }

  double multiply_seconds() const {
    double const clocks = step_clocks();
    double const pieces = streams_ ? p_.blocks * (share_ + 1) : rounds_;
    double const waves = streams_ ? 1 : std::ceil(share_), packs = depth_bytes() / 32;
    double const busy = std::max(rounds_ * clocks, waves * packs * fit_.clocks_of_pack);
    double const seconds =
        busy * steps_ / gpu_.clock_hertz + waiting_seconds(busy) + pieces * fit_.tile_seconds / p_.blocks;
    if (volume_.longest <= volume_.steps)
      return limited_by_power(fit_, seconds, p_, share_of_products(clocks));
    double const deepest = std::ceil(volume_.longest / p_.cluster_k) * clocks / gpu_.clock_hertz;
    // The deepest tile of a group, or phase.
    return limited_by_power(fit_, std::max(seconds, deepest), p_, share_of_products(clocks));
  }
  // The time in which the blocks of a multiprocessor wait for stages, beyond `busy` clocks per step.
  double waiting_seconds(double busy) const {
    if (volume_.of_windows || volume_.of_group) return 0;
    double const steps = std::max(0.0, steps_ - p_.stages);
    double const step = rounds_ / together() * fit_.stage_seconds / p_.stages;
    return steps * std::max(0.0, step - busy / gpu_.clock_hertz);
  }
  // The share of the tensor cores' rate that is used by products of elements of D. 1 for matrices, for which
  // the power limit was fitted without it (docs/decisions/0045).
  double share_of_products(double clocks) const {
    if (!volume_.of_windows) return 1;
    auto const exists = [](Index extent, int block) {
      return static_cast<double>(extent) / static_cast<double>(ceiling_divide(extent, Index{block}) * block);
    };
    double const products = block_ * exists(form_.m, p_.block_m) * exists(form_.n, p_.block_n) * p_.block_k;
    return std::min(1.0, products * size_ / 4096 / clocks);
  }

  // In cooperative mode both warpgroups store at the same time; in ping-pong, one stores while the other
  // multiplies. Without a buffer for the whole tile, warps wait for TMA in between.
  double store_seconds(double multiply) const {
    double const rate = direction_of_result(form_) == Along::mn ? fit_.store_rate_along_m : fit_.store_rate;
    bool const is_staged = p_.epilogue == EpilogueSchedule::staged;
    double const tile = fit_.store_seconds + (is_staged ? fit_.staged_seconds : 0) +
                        stored() / p_.cluster_k * size_of(form_.d.type) / rate;
    // Staging takes longer than the products of few steps, which then no longer hide it.
    double const exposed = is_staged && rounds_ > 1 ? rounds_ - multiply / tile : 1;
    double const stores = p_.ping_pong ? std::max(1.0, exposed) : streams_ ? rounds_ + 0.5 : rounds_;
    return waits_for_buffers() * stores * tile;
  }
  // In batches, a warp with several buffers does not wait for them (48 batches with 3 to 15 policies on an
  // H200).
  double waits_for_buffers() const {
    if (p_.partition == Partition::split_k_parallel || !stores_by_tma(p_, form_)) return 1;
    TensorStore const store = tensor_store_of(p_, form_);
    bool const waits = store.buffers < store.boxes && (store.buffers == 1 || form_.batch == 1);
    return waits ? fit_.waits_for_buffer : 1;
  }

  // With a single shallow step, tile elements beyond the edge of D take additional time.
  double missing_seconds() const {
    if (depth_bytes() == step_bytes || volume_.steps > 1) return 0;
    return fit_.not_hidden * rounds_ * (block_ - stored()) / fit_.missing_rate;
  }
  // The rows, columns and elements of a tile that lie within D.
  double rows_of_d() const { return static_cast<double>(std::min<Index>(p_.block_m, form_.m)); }
  double columns_of_d() const { return static_cast<double>(std::min<Index>(p_.block_n, form_.n)); }
  double stored() const { return rows_of_d() * columns_of_d(); }

  double load_seconds() const {
    // The achieved memory bandwidth depends on the bytes in flight per multiprocessor.
    double const bytes_for_full_rate =
        fit_.latency_seconds * gpu_.memory_bytes_per_second / gpu_.multiprocessors;
    double const resident =
        std::min<double>(p_.blocks, (streams_ ? all_resident_ : blocks_) / gpu_.multiprocessors);
    double const drawn = std::clamp(resident * bytes_in_flight() / bytes_for_full_rate, 0.01, 1.0);
    // Blocks at different depths of streamed tiles share their operands in L2 less often.
    double const shared_less = streams_
                                   ? fit_.shared_less * recipe_.streamed * volume_.steps * depth_bytes() *
                                         (static_cast<double>(p_.block_m) / p_.cluster_n +
                                          static_cast<double>(p_.block_n) / p_.cluster_m)
                                   : 0;
    // Partial sums that do not fit in the L2 cache add to the memory traffic.
    double const parts =
        recipe_.splits > 1
            ? std::max(0.0, blocks_ / p_.cluster_k * block_ * size_of(recipe_.sum) - fit_.bytes_in_l2)
            : 0;
    double const rate = fit_.share_of_loads * drawn * gpu_.memory_bytes_per_second;
    // A small number of blocks, as in the last round, does not reach the memory's full rate.
    double const last = streams_ ? 0 : blocks_ - std::floor(share_) * all_resident_, part = last / blocks_;
    // Multiprocessors with more blocks than others take longer.
    double const at_once = last > 0 ? last / std::ceil(last / multiprocessors_) : 0;
    double const rate_of_last = std::min(rate, at_once * fit_.multiprocessor_rate);
    return (volume_.operand_bytes + parts + shared_less + read_again_bytes()) *
           ((1 - part) / rate + (last > 0 ? part / rate_of_last : 0));
  }
  // The cost, in bytes, of reading the larger operand again in several clusters; where windows overlap, that
  // operand counts at most the bytes of both operands. 0 for phases, which differ.
  double read_again_bytes() const {
    if (volume_.of_group) return fit_.read_again * volume_.read_again_bytes;
    if (volume_.longest != volume_.steps) return 0;
    return fit_.read_again * std::min(bytes_read_again(form_, p_), volume_.operand_bytes);
  }
  // In a batch, whose operands are small, blocks load from L2 while others store.
  double write_seconds() const {
    constexpr double usual = (128 + 256) / (128.0 * 256);  // rows loaded per element stored
    double const rows = rows_of_d() / p_.cluster_n + columns_of_d() / p_.cluster_m;
    double const slower = form_.batch > 1 ? fit_.write_slowed_by_loads * (rows / stored() / usual - 1) : 0;
    return (1 + slower) * volume_.result_bytes / (fit_.share_of_stores * gpu_.memory_bytes_per_second);
  }
  // The bytes that a block has in flight: those of all stages, of half of them if threads load an operand, or
  // four runs per thread with shifted copies.
  double bytes_in_flight() const {
    if (is_shifted(recipe_.a, size_) || is_shifted(recipe_.b, size_)) return 128.0 * 4 * 16;
    bool const by_threads = recipe_.a.by_threads || recipe_.b.by_threads;
    return (by_threads ? p_.stages / 2 : p_.stages) * depth_bytes() * (rows_of_d() + columns_of_d());
  }

  // Blocks of a cluster add the parts of their tile.
  double exchange_seconds() const {
    if (p_.cluster_k == 1) return 0;
    return std::ceil(blocks_ / all_resident_) *
           (fit_.exchange_seconds + block_ * size_of(recipe_.sum) / fit_.exchange_rate);
  }
  // Blocks add the parts of other blocks.
  double combine_seconds() const {
    double const slot = seconds_of_slot(fit_, recipe_);
    if (streams_) {
      // Not measured: if ranges are longer than a tile, partial sums are ready before they are needed.
      double const added = std::max(1.0, std::ceil(all_resident_ / recipe_.streamed));
      return (share_ < 1 ? fit_.handed_on : fit_.handed_on / 2) + (1 + added) * slot;
    }
    return p_.partition == Partition::split_k && recipe_.splits > 1 ? fit_.handed_on + splits_ * slot : 0;
  }

  // With stream-K all blocks finish at the same time, to within one step, and each processes one more piece
  // of a tile.
  double rounds() const {
    if (streams_) return p_.blocks * (std::ceil(share_ * steps_) / std::max(1.0, steps_));
    double const full = std::floor(blocks_ / all_resident_), rest = blocks_ - full * all_resident_;
    return full * p_.blocks + std::min<double>(p_.blocks, std::ceil(rest / multiprocessors_));
  }

  Fit const& fit_;
  GemmRecipe const& recipe_;
  GemmPolicy const& p_;
  CanonicalGemm const& form_;
  Gpu const& gpu_;
  Volume const& volume_;
  int const size_ = size_of(form_.a.type);
  int const lines_of_a_ = lines_of_a(recipe_, form_, volume_),
            lines_of_b_ = lines_of_b(recipe_, form_, volume_);
  bool const streams_ = p_.partition == Partition::stream_k && recipe_.streamed > 0;
  double const splits_ = static_cast<double>(recipe_.splits);
  double const block_ = static_cast<double>(p_.block_m) * p_.block_n;  // elements
  double const blocks_ = volume_.tiles * splits_ * p_.cluster_k;
  double const all_resident_ = static_cast<double>(resident_clusters(p_, gpu_));  // blocks
  double const multiprocessors_ = all_resident_ / p_.blocks;                      // with resident blocks
  double const steps_ = std::ceil(volume_.steps / (splits_ * p_.cluster_k));      // of a block's part
  double const share_ = blocks_ / all_resident_;
  double const rounds_ = rounds();  // tiles that a multiprocessor processes, one after another
};

}  // namespace

double bytes_read_again(CanonicalGemm const& form, GemmPolicy const& p) {
  Index const readers = form.m > form.n ? ceiling_divide(form.n, Index{p.block_n} * p.cluster_n)
                                        : ceiling_divide(form.m, Index{p.block_m} * p.cluster_m);
  if (readers <= 1) return 0;
  return static_cast<double>(std::max(form.m, form.n) * form.batch) * static_cast<double>(form.k) *
         size_of(form.a.type);
}

double predict_warp_specialized(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu,
                                Volume const& volume) {
  return Prediction(recipe, form, gpu, volume).seconds();
}

double least_seconds_by_wgmma(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu,
                              Volume const& volume, int splits) {
  Fit const& fit = fit_of(form, volume);
  GemmPolicy const& p = recipe.policy;
  int const size = size_of(form.a.type);
  // Clocks of all steps of all tiles: products, operands by TMA unless B stays in shared memory, or by
  // threads.
  double const block = static_cast<double>(p.block_m) * p.block_n;
  double const products =
      block * p.block_k * size / (4096 * fit.share_of_peak * (p.ping_pong ? fit.ping_pong : 1.0));
  double const lines = share_left(fit.saved_by_sharing, p.cluster_n) * lines_of_a(recipe, form, volume) +
                       share_left(fit.saved_by_sharing, p.cluster_m) * lines_of_b(recipe, form, volume);
  double const intake = volume.steps > 1 ? lines * (p.block_k * size / rate_of_intake(fit, p, form)) : 0;
  double const copies =
      copy_clocks(fit, recipe.a, p.block_m, size) + copy_clocks(fit, recipe.b, p.block_n, size);
  double const clocks = volume.tiles * volume.steps * std::max({products, intake, copies});
  double const busy = splits == 1
                          ? gpu.multiprocessors
                          : std::min<double>(gpu.multiprocessors, volume.tiles * splits * p.cluster_k);
  double const multiply = limited_by_power(fit, clocks / (busy * gpu.clock_hertz), p);
  double const load = volume.operand_bytes / (fit.share_of_loads * gpu.memory_bytes_per_second);
  constexpr double rounding = 1 - 1e-9;
  double const whole = launch_seconds(fit, p, volume, splits, gpu) + std::max(multiply, load) +
                       fit.not_overlapped * std::min(multiply, load);
  double const parts = splits == 1 ? 0 : fit.handed_on + splits * seconds_of_slot(fit, recipe);
  return rounding * share_of_cluster(fit, p, volume) * (whole + parts);
}

}  // namespace cosmati::plan
