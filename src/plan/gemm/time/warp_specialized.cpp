// The predicted time of a product by the main loop warp_specialized.
#include <algorithm>
#include <cmath>

#include "cosmati/gemm/steps.h"
#include "src/plan/buffers.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/time/fit.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

Fit const& fit_of(CanonicalGemm const& form, Volume const& volume) {
  if (volume.of_windows) return size_of(form.a.type) == 4 ? fit_of_tf32_windows : fit_of_others;
  return size_of(form.a.type) == 2 ? fit_of_16_bits : fit_of_others;
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
                     !volume.of_group;
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

// Whether all blocks of a plain product run at the same time, if k is divided into `splits` parts: of a
// single matrix in a 16-bit type with sums in f32, K-major operands that TMA loads in full steps, no
// ping-pong and no stream-K.
bool is_single_round(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu,
                     Volume const& volume, double splits) {
  GemmPolicy const& p = recipe.policy;
  bool const is_plain = size_of(form.a.type) == 2 && form.batch == 1 && recipe.sum == DataType::f32 &&
                        !volume.of_convolution && !volume.of_windows && !volume.of_group;
  bool const is_full =
      p.block_k * size_of(form.a.type) == step_bytes && !p.ping_pong && p.partition != Partition::stream_k;
  bool const by_boxes = recipe.a.along == Along::k && recipe.b.along == Along::k && !recipe.a.by_threads &&
                        !recipe.b.by_threads;
  return is_plain && is_full && by_boxes &&
         volume.tiles * splits * p.cluster_k <= static_cast<double>(resident_clusters(p, gpu));
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
    if (!is_single_round(recipe_, form_, gpu_, volume_, splits_)) return usual_seconds();
    double const round = seconds_of_single_round();
    double const share = (round_.long_seconds - round) / (round_.long_seconds - round_.short_seconds);
    if (share >= 1) return round;
    double const usual = usual_seconds();
    return usual + std::max(0.0, share) * (round - usual);
  }

 private:
  double usual_seconds() const {
    double const multiply = multiply_seconds(), load = load_seconds();
    double const slower = refills_few_stages() ? fit_.few_stages : 1.0;
    return share_of_cluster(fit_, p_, volume_) *
           (launch_seconds(fit_, p_, volume_, recipe_.splits, gpu_) +
            std::max(slower * (multiply + store_seconds(multiply)), load + write_seconds()) +
            fit_.not_overlapped * std::min(multiply, load) + exchange_seconds() + combine_seconds() +
            missing_seconds());
  }

  double seconds_of_single_round() const {
    double const blocks = std::ceil(blocks_ / multiprocessors_);  // of a multiprocessor
    double const sharing = p_.cluster_m * p_.cluster_n;
    bool const alone = p_.consumer_warps() * blocks <= 4;
    double const products =
        block_ * p_.block_k * size_ / (4096 * round_.share_of_peak * (alone ? fit_.alone : 1));
    double const step = std::max(blocks * std::max(products, load_clocks_of_single_round()),
                                 depth_bytes() / 32 * round_.clocks_of_pack) /
                        gpu_.clock_hertz;
    double const waits =
        std::max(0.0, steps_ - p_.stages) * std::max(0.0, round_.stage_seconds / p_.stages - step);
    double const multiply = (sharing == 2 ? round_.pair : 1) * (steps_ * step + waits);
    double const bytes = volume_.operand_bytes + volume_.result_bytes + read_again_in_single_round();
    double const memory = bytes / (round_.share_of_memory * gpu_.memory_bytes_per_second);
    double const exchange = round_.exchange_seconds + block_ * size_of(recipe_.sum) / round_.exchange_rate;
    double const rate =
        direction_of_result(form_) == Along::mn ? round_.store_rate_along_m : round_.store_rate;
    return round_.launch_seconds + round_.warpgroup_seconds * (p_.block_m / 64.0 - 1) +
           (sharing > 1 ? round_.cluster_seconds : 0) + std::max(multiply, memory) +
           round_.not_overlapped * std::min(multiply, memory) + (p_.cluster_k > 1 ? exchange : 0) +
           blocks * stored() / p_.cluster_k * size_of(form_.d.type) / rate +
           (p_.epilogue == EpilogueSchedule::staged ? fit_.staged_seconds : 0) + combine_seconds();
  }
  double read_again_in_single_round() const {
    auto const again = [&](Index extent, Index other, int block, int cluster) {
      Index const readers = ceiling_divide(other, Index{block} * cluster);
      return static_cast<double>(extent * form_.k) * size_ * std::log2(static_cast<double>(readers));
    };
    return round_.read_again * (again(form_.m, form_.n, p_.block_n, p_.cluster_n) +
                                again(form_.n, form_.m, p_.block_m, p_.cluster_m));
  }
  // The clocks of loading a step of the slowest block: any block, one whose boxes end beyond an operand, or
  // one whose tile only fills a cluster.
  double load_clocks_of_single_round() const {
    struct Slice {  // of an operand's tile, which a block of a cluster loads
      double rows, missing, absent;
    };
    auto const slice_of = [](Index extent, int block, int lines, int cluster, int sharing) {
      Index const tiles = ceiling_divide(extent, Index{block});
      double const rows = static_cast<double>(lines) / sharing;
      auto const beyond = static_cast<double>(tiles * block - extent - (tiles == 1 ? block - lines : 0));
      return Slice{rows, std::min(beyond, rows), tiles % cluster != 0 ? rows : 0};
    };
    Slice const a = slice_of(form_.m, p_.block_m, lines_of_a_, p_.cluster_m, p_.cluster_n);
    Slice const b = slice_of(form_.n, p_.block_n, lines_of_b_, p_.cluster_n, p_.cluster_m);
    bool const shares = p_.cluster_m * p_.cluster_n > 1;
    double const usual = shares ? fit_.intake_of_cluster : fit_.intake;
    double const row = round_.clocks_of_row * usual / intake();
    double const missing = a.missing + b.missing;
    double const at_edge =
        missing > 0 ? row * (a.rows + b.rows - missing) + round_.clocks_of_missing_row * missing : 0;
    double const beyond = a.absent > b.absent ? row * b.rows + round_.clocks_of_absent_row * a.absent
                          : b.absent > 0      ? row * a.rows + round_.clocks_of_absent_row * b.absent
                                              : 0;
    double const by_all =
        blocks_ * (a.rows + b.rows) * step_bytes /
        (round_.intake_of_all * gpu_.multiprocessors * std::ceil(blocks_ / multiprocessors_));
    return std::max({intake_clocks() * usual / round_.intake, at_edge, beyond, by_all});
  }

  // Clocks of a step of one block: products, operands by TMA, or copies by threads, whichever takes longest.
  double step_clocks() const {
    // TMA fills rows beyond the edge of an operand with zeros, slowly.
    double const missing = missing_rows(form_.m, p_.block_m, lines_of_a_) +
                           (keeps_b() ? 0 : missing_rows(form_.n, p_.block_n, lines_of_b_));
    double const products = block_ * p_.block_k / products_per_clock();
    double const copies =
        copy_clocks(fit_, recipe_.a, p_.block_m, size_) + copy_clocks(fit_, recipe_.b, p_.block_n, size_);
    double const clocks =
        std::max({products, intake_clocks() + fit_.clocks_of_missing_row * missing, copies}) +
        (form_.batch > 1 ? fit_.copies_not_hidden * std::min(copies, products) : 0);
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
      bool const crosses = box.row * size_ == step_bytes && block * size_ % step_bytes != 0;
      return rows_of_line * std::max((crosses ? fit_.crossing_lines : 1) * box.row * size_ / intake(),
                                     fit_.clocks_of_box_row);
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
    bool const is_staged = p_.epilogue == EpilogueSchedule::staged;
    bool const in_parts = form_.batch > 1 && !form_.by_pointers && form_.d.width * size_of(form_.d.type) < 16;
    double const rate = direction_of_result(form_) == Along::mn ? fit_.store_rate_along_m
                        : in_parts                              ? fit_.store_rate_in_parts
                                                                : fit_.store_rate;
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

  static constexpr SingleRoundFit const& round_ = fit_of_single_round;

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
  // Fitted with an operand that a batch shares counted for each product.
  return static_cast<double>(std::max(form.m, form.n) * form.batch) * static_cast<double>(form.k) *
         size_of(form.a.type);
}

bool is_short_round(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu,
                    Volume const& volume) {
  return recipe.predicted_seconds < fit_of_single_round.long_seconds &&
         recipe.policy.multiply == Multiply::wgmma &&
         is_single_round(recipe, form, gpu, volume, recipe.splits);
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
  double const parts = splits == 1 ? 0 : fit.handed_on + splits * seconds_of_slot(fit, recipe);
  double const usual = share_of_cluster(fit, p, volume) *
                       (launch_seconds(fit, p, volume, splits, gpu) + std::max(multiply, load) +
                        fit.not_overlapped * std::min(multiply, load) + parts);
  if (!is_single_round(recipe, form, gpu, volume, splits)) return rounding * usual;
  SingleRoundFit const& round = fit_of_single_round;
  double const faster = std::max(round.share_of_peak / fit.share_of_peak, round.intake / fit.intake);
  double const least = clocks / faster / (busy * gpu.clock_hertz);
  double const memory = volume.operand_bytes / (round.share_of_memory * gpu.memory_bytes_per_second);
  return rounding * std::min(usual, round.launch_seconds + std::max(least, memory) +
                                        round.not_overlapped * std::min(least, memory) + parts);
}

}  // namespace cosmati::plan
