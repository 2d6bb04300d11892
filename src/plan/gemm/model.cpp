// Performance model of a GEMM kernel: lower bounds that hold for any kernel, plus the overhead of this one.
#include "src/plan/gemm/model.h"

#include <algorithm>
#include <cmath>

#include "cosmati/tile/padded_tile.h"
#include "cosmati/tile/shared_tile.h"
#include "src/ops/architecture.h"
#include "src/plan/gemm/repack.h"
#include "src/plan/gemm/small/gemv.h"
#include "src/plan/gemm/small/tiny.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

// The bytes in shared memory of one pack: an element, or what replaces it, at one step of depth.
int pack_bytes(GemmRecipe const& recipe, DataType element, bool is_a) {
  if (recipe.policy.multiply == Multiply::dp4a) return 4;
  if (recipe.policy.multiply == Multiply::half2 && recipe.policy.main_loop != MainLoop::multistage)
    return is_a ? 4 : 2;  // elements of a are stored twice
  bool const as_they_lie =
      recipe.policy.main_loop == MainLoop::multistage && recipe.policy.multiply == Multiply::fma;
  return size_of(as_they_lie ? element : recipe.sum);
}

// The rate of WMMA relative to mma.sync: its shapes for 8-bit integers, and for f64 on Hopper, are half as
// large.
double wmma_share(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu) {
  if (recipe.policy.multiply != Multiply::wmma) return 1;
  Features const& features = features_of(gpu);
  bool const halves = (size_of(problem.a.type) == 1 && features.mma) ||
                      (recipe.sum == DataType::f64 && features.large_f64_mma);
  return halves ? 0.5 : 0.98;
}

// Multiply-adds per clock and multiprocessor.
double rate(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu) {
  switch (recipe.policy.multiply) {
    case Multiply::mma:
    case Multiply::wmma:
      return wmma_share(recipe, problem, gpu) *
             (recipe.sum == DataType::f64 ? mma_rate_f64(gpu)
                                          : mma_rate(gpu, recipe.sum) * 2 / size_of(problem.a.type));
    case Multiply::half2: return 2.0 * gpu.fma_half2;
    case Multiply::dp4a: return 4.0 * gpu.dp4a;
    case Multiply::wgmma:
    case Multiply::fma: break;
  }
  return recipe.sum == DataType::f64 ? gpu.fma_f64 : gpu.fma_f32;
}

bool by_tensor_cores(GemmPolicy const& policy) {
  return policy.multiply == Multiply::mma || policy.multiply == Multiply::wmma;
}

// How many times slower than on an H200 a multiprocessor is at mma.sync. The losses below were measured on an
// H200, in clocks; slower tensor cores wait less often for the same shared memory and L2 cache. f64 is
// excluded because most GPUs multiply it in other units.
double slowness_of_mma(GemmRecipe const& recipe, Gpu const& gpu) {
  return recipe.sum == DataType::f64 ? 1 : mma_rate_of_h200 / mma_rate(gpu, recipe.sum);
}

// The losses of a kernel. `wait`: clocks for the next step, relative to a block of one row and column;
// `reads`: the share of reads from shared memory that is not hidden; `warps`: the warps per multiprocessor
// that reach the full rate.
struct Losses {
  double wait, reads, warps, launch_seconds;
  double narrow_copy;  // clocks of a copy of less than 16 bytes
  double caution;      // factor of the prediction
  // For multiply-adds: the rate with cp.async relative to loads through registers; issue slots of a 16-byte
  // load from shared memory; clocks until a step's loads arrive, while the steps before are multiplied; and
  // the share of the shorter of two times that the longer does not hide, for multiplying and that latency,
  // and for multiplying and memory traffic.
  double by_copies = 0.92, shared_load = 1.5, step_latency = 0, latency_not_hidden = 0, memory_not_hidden = 0;
};
// f32 by multiply-adds, fitted to 470 timings of 22 products on an H200 (docs/decisions/0040). With two
// blocks of 64x64 per multiprocessor and a single step in flight, 1024x1024x1024 took 1.5 times as long as
// its instructions.
Losses losses_of_f32(GemmPolicy const& policy) {
  bool const is_wide = std::max(policy.block_m, policy.block_n) > 128;
  double const steps_in_flight = policy.main_loop == MainLoop::multistage ? (policy.stages - 1) / 1.2 : 1.0;
  return {.wait = 0,
          .reads = 0,
          .warps = 8,
          .launch_seconds = 1e-6,
          .narrow_copy = 0,
          .caution = is_wide ? 1.21 : 1.05,
          .by_copies = 0.82,
          .shared_load = 0.64,
          .step_latency = 980 / steps_in_flight,
          .latency_not_hidden = 0.21,
          .memory_not_hidden = 0.14};
}

// mma.sync: fitted to 393 timings of plain products on an H100 (docs/decisions/0044), and otherwise on an
// H200. On both, warp_specialized was faster where mma.sync was predicted to win by a small margin.
Losses losses_of(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu,
                 Volume const& volume) {
  Losses const before = {
      .wait = 32, .reads = 0.5, .warps = 8, .launch_seconds = 3e-6, .narrow_copy = 0, .caution = 1};
  if (recipe.sum == DataType::f64) {  // docs/decisions/0040
    Losses losses = before;
    bool const specialized = recipe.policy.main_loop == MainLoop::warp_specialized;
    losses.wait = specialized ? 8 : 12;
    losses.reads = specialized ? 0 : 0.25;
    if (recipe.policy.main_loop == MainLoop::double_buffered) losses.caution = 1.15;
    return losses;
  }
  if (recipe.policy.multiply == Multiply::fma && problem.a.type == DataType::f32)
    return losses_of_f32(recipe.policy);
  if (recipe.policy.multiply != Multiply::mma) return before;
  if (volume.of_convolution) {  // on an H200, six in f16 took 1.18 to 1.64 times the prediction
    Losses losses = before;
    losses.caution = features_of(gpu).wgmma && size_of(problem.a.type) == 2 ? 1.15 : 1;
    return losses;
  }
  bool const deep = recipe.policy.block_k * size_of(problem.a.type) >= 128;
  return {.wait = deep ? 8.5 : 12.6,
          .reads = 0.386,
          .warps = 5,
          .launch_seconds = 1.5e-6,
          .narrow_copy = 0.5,
          .caution = features_of(gpu).wgmma ? 1.3 : 1};
}

// The fraction of issued instructions that multiply. For thread_m * thread_n products, a thread loads
// thread_m + thread_n packs in accesses of 16 bytes, and executes the loop's instructions.
double issue_efficiency(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu,
                        Losses const& losses, int resident) {
  GemmPolicy const& p = recipe.policy;
  if (by_tensor_cores(p)) {  // warp tiles are loaded from shared memory at 128 bytes per clock
    // WMMA loads MN-major 8-bit elements one at a time, with two-way bank conflicts.
    auto const times = [&](OperandAccess const& access, DataType type) {
      return p.multiply == Multiply::wmma && size_of(type) == 1 && access.along == Along::mn ? 8 : 1;
    };
    double const reads =
        (p.warp_m * times(recipe.a, problem.a.type) + p.warp_n * times(recipe.b, problem.b.type)) * 32.0 /
        128;
    double const slowness = slowness_of_mma(recipe, gpu);
    double const clocks = (recipe.sum == DataType::f64 ? 2 : 1) * slowness;  // for the four tensor cores
    double const products = clocks * p.warp_m * p.warp_n / 16.0 / 8.0;
    // Larger tiles wait less.
    double const tile = 1 / (1 + (losses.wait / p.block_m + losses.wait / p.block_n) / slowness);
    return tile * products / (products + losses.reads * reads);
  }
  // f64 and dp4a issue every other clock, so other instructions cost half as much relative to them.
  bool const every_other = p.multiply == Multiply::dp4a || recipe.sum == DataType::f64;
  double const products =
      p.thread_m * p.thread_n / (p.multiply == Multiply::half2 ? 2.0 : 1.0) * (every_other ? 2 : 1);
  double const reads = (p.thread_m * pack_bytes(recipe, problem.a.type, true) +
                        p.thread_n * pack_bytes(recipe, problem.b.type, false)) /
                       16.0;
  double const loads =
      (p.block_m + p.block_n) * 4.0 / (p.threads() * std::min(recipe.a.width, recipe.b.width));
  // Measured on an H200 (docs/decisions/0004): cp.async costs about as much as it saves in registers, and a
  // second resident block hides the barriers of the first.
  double const by_copies = p.main_loop == MainLoop::multistage ? losses.by_copies : 1;
  double const overlap = 1 - (p.multiply == Multiply::dp4a ? 0.10 : 0.06) / resident;
  double const tile = 1 / (1 + 3.0 / p.block_m + 3.0 / p.block_n);
  return by_copies * overlap * tile * products / (products + losses.shared_load * reads + loads);
}

constexpr double latency_seconds = 1.2e-6;  // of the first load
constexpr double share_of_memory = 0.7;     // the share of its rate that is reached

// Writing and reading partial sums.
double seconds_of_partials(double sums, GemmRecipe const& recipe, Gpu const& gpu) {
  return 2.0 * sums * size_of(recipe.sum) / gpu.memory_bytes_per_second;
}
double seconds_of_combining(double parts) { return latency_seconds * (1 + parts / 4.0); }

// The bytes of a step of one operand in shared memory, as tensor cores read it (MatrixOperand in
// gemm/traits.h).
int matrix_tile_bytes(int size, Along along, int depth, int outer) {
  return size == 4 && along == Along::mn ? padded_tile_bytes(size, along, depth, outer)
                                         : depth * outer * size;
}

}  // namespace

int shared_storage_bytes(GemmRecipe const& recipe, CanonicalGemm const& problem) {
  GemmPolicy const& p = recipe.policy;
  if (p.main_loop == MainLoop::warp_specialized) return warp_specialized_shared_bytes(p, problem);
  if (p.main_loop == MainLoop::gemv) return p.warps_k * p.block_m * p.block_n * size_of(recipe.sum);
  int const value = size_of(problem.evaluation);
  if (p.multiply == Multiply::wmma) {
    int const size = size_of(problem.a.type);
    int const rows = p.warps_m() * (recipe.sum == DataType::f64 ? 8 : 16);  // rows of D staged at a time
    return std::max(p.stages * (padded_tile_bytes(size, recipe.a.along, p.block_k, p.block_m) +
                                padded_tile_bytes(size, recipe.b.along, p.block_k, p.block_n)),
                    (rows * padded_sums(p.block_n) * size_of(recipe.sum) + 127) / 128 * 128);
  }
  bool const by_matrices = p.multiply == Multiply::mma && recipe.sum != DataType::f64;
  int const depth = p.multiply == Multiply::mma ? p.block_k : p.block_k / pack_depth_of(p.multiply);
  int const stage = by_matrices
                        ? matrix_tile_bytes(size_of(problem.a.type), recipe.a.along, depth, p.block_m) +
                              matrix_tile_bytes(size_of(problem.b.type), recipe.b.along, depth, p.block_n)
                        : shared_tile_bytes(pack_bytes(recipe, problem.a.type, true), depth, p.block_m) +
                              shared_tile_bytes(pack_bytes(recipe, problem.b.type, false), depth, p.block_n);
  int const main_loop = p.stages * stage * p.matrices;
  if (p.epilogue == EpilogueSchedule::direct) return main_loop;
  return std::max(main_loop, p.warps_m() * p.lanes_m() * (p.block_n * value + 16));
}

Footprint footprint(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu) {
  GemmPolicy const& p = recipe.policy;
  Footprint print;
  print.shared_bytes = shared_storage_bytes(recipe, problem);
  if (print.shared_bytes > gpu.shared_bytes_per_block) return print;
  constexpr int reserved_bytes = 1024;  // shared memory that the system reserves per block
  int const by_shared = gpu.shared_bytes_per_multiprocessor / (print.shared_bytes + reserved_bytes);
  int const by_threads = gpu.threads_per_multiprocessor / p.threads();
  constexpr int registers = 65536, max_registers = 256;  // per multiprocessor; per thread (one unused)
  int const by_registers = std::max(p.blocks, registers / (max_registers * p.threads()));
  print.blocks_resident =
      std::max(1, std::min({by_shared, by_threads, gpu.blocks_per_multiprocessor, by_registers}));
  return print;
}

Index tiles_of(GemmPolicy const& policy, CanonicalGemm const& problem) {
  return tiles_of_clusters(policy, problem);
}

Volume volume_of(CanonicalGemm const& problem, GemmRecipe const& recipe) {
  auto const batch = static_cast<double>(problem.batch), m = static_cast<double>(problem.m),
             n = static_cast<double>(problem.n), k = static_cast<double>(problem.k);
  double const steps = std::ceil(k / recipe.policy.block_k);
  // Bytes of an element in all matrices; other main loops were fitted with copies of a shared operand.
  bool const once = recipe.policy.multiply == Multiply::wgmma;
  auto const all = [&](MatrixForm const& operand) {
    return static_cast<double>(once ? matrices_of(operand, problem) : problem.batch) * size_of(operand.type);
  };
  return {static_cast<double>(tiles_of(recipe.policy, problem)) * batch, steps, steps,
          k * (m * all(problem.a) + n * all(problem.b)),
          batch * m * n * size_of(problem.d.type) * (problem.c.present ? 2 : 1)};
}

double predict_seconds(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu) {
  return predict_seconds(recipe, problem, gpu, volume_of(problem, recipe));
}

double predict_seconds(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu,
                       Volume const& volume) {
  GemmPolicy const& p = recipe.policy;
  if (p.multiply == Multiply::wgmma) return predict_warp_specialized(recipe, problem, gpu, volume);
  if (p.main_loop == MainLoop::gemv || p.main_loop == MainLoop::tiny) {
    int const together = std::max(1, footprint(recipe, problem, gpu).blocks_resident);
    return p.main_loop == MainLoop::gemv ? predict_gemv(recipe, problem, gpu, together)
                                         : predict_tiny(recipe, problem, gpu, together);
  }
  Losses const losses = losses_of(recipe, problem, gpu, volume);
  int const resident = std::max(1, footprint(recipe, problem, gpu).blocks_resident);
  double const blocks = volume.tiles * recipe.splits;
  double const steps = std::ceil(volume.steps / recipe.splits);

  // A multiprocessor runs `together` blocks concurrently; the last wave may leave most of them idle.
  double const resident_blocks = static_cast<double>(gpu.multiprocessors) * resident;
  double const whole_waves = std::floor(blocks / resident_blocks);
  double const rest = std::ceil((blocks - whole_waves * resident_blocks) / gpu.multiprocessors);
  double clocks_of_block =
      steps * p.block_m * p.block_n * p.block_k /
      (rate(recipe, problem, gpu) * issue_efficiency(recipe, problem, gpu, losses, resident));
  // Measured on an H200: runs narrower than the 4 bytes of cp.async are loaded element by element, with a
  // wait for each. The value for WMMA, whose loader keeps all loads of a thread in flight, is a prediction.
  double const clocks_of_element = p.multiply == Multiply::wmma ? 0.3 : 1.5;
  if (by_tensor_cores(p)) {
    auto const lone = [&](OperandAccess const& access, DataType type) {
      return access.width * size_of(type) < 4;
    };
    double const elements =
        (lone(recipe.a, problem.a.type) ? p.block_m : 0) + (lone(recipe.b, problem.b.type) ? p.block_n : 0);
    clocks_of_block += steps * p.block_k * elements * clocks_of_element;
    auto const narrow = [&](OperandAccess const& access, DataType type) {
      int const bytes = access.width * size_of(type);
      return bytes >= 4 && bytes < 16 ? 1.0 / access.width : 0;
    };
    double const copies =
        p.block_m * narrow(recipe.a, problem.a.type) + p.block_n * narrow(recipe.b, problem.b.type);
    clocks_of_block += steps * p.block_k * copies * losses.narrow_copy;
  }
  auto const seconds_of_wave = [&](double together) {
    double const occupied = std::min(1.0, together * p.team() * p.matrices / 32 / losses.warps);
    double const clocks = together * clocks_of_block / occupied, latency = steps * losses.step_latency;
    return (std::max(clocks, latency) + losses.latency_not_hidden * std::min(clocks, latency)) /
           gpu.clock_hertz;
  };
  // With stream-K all blocks finish at the same time, to within one step.
  bool const streams = p.partition == Partition::stream_k;
  double const longer = volume.steps > 0 ? volume.longest / volume.steps : 1;  // the deepest tile of a group
  double const multiply =
      std::max(streams ? std::max(blocks / resident_blocks, 1 / steps) * seconds_of_wave(resident) +
                             seconds_of_wave(resident) / steps
                       : whole_waves * seconds_of_wave(resident) + (rest > 0 ? seconds_of_wave(rest) : 0),
               longer > 1 ? longer * seconds_of_wave(1) : 0);
  double const once = volume.operand_bytes + volume.result_bytes;
  double const through_l2 = blocks * steps * p.block_k *
                            (p.block_m * size_of(problem.a.type) + p.block_n * size_of(problem.b.type));
  double const l2_rate = 64.0 * gpu.multiprocessors * gpu.clock_hertz * 0.6;
  double const in_slots = streams             ? resident_blocks
                          : recipe.splits > 1 ? blocks
                                              : 0;  // number of partial sums
  double const partials = seconds_of_partials(in_slots * p.block_m * p.block_n, recipe, gpu);
  // The cost of flags, and of the slots that a block adds.
  double const added = streams ? std::ceil(resident_blocks / std::max(1, recipe.streamed)) : recipe.splits;
  double const combine = in_slots > 0 ? seconds_of_combining(added) : 0;
  // Blocks of short sums load, multiply and store one after another: on an H100, 802816x96x16 and
  // 200704x144x24 in f16 took 155 to 161 and 78 us with multiply-adds, 0.34 and 0.29 of the memory's rate.
  bool const is_short = size_of(problem.a.type) == 2 && volume.steps * p.block_k <= 64;
  double const share = is_short ? share_of_memory / 2 : share_of_memory;
  double const bytes = std::max(once / (share * gpu.memory_bytes_per_second), through_l2 / l2_rate);
  double const fill = latency_seconds * (1 + whole_waves * 0.2);
  return losses.caution * (losses.launch_seconds + fill + std::max(multiply, bytes) +
                           losses.memory_not_hidden * std::min(multiply, bytes) + partials + combine);
}

double least_seconds_of_parts(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu,
                              Volume const& volume, int splits) {
  GemmPolicy const& p = recipe.policy;
  double const repack = predict_repack(recipe, gpu);
  if (p.multiply == Multiply::wgmma)
    return repack + least_seconds_by_wgmma(recipe, problem, gpu, volume, splits);
  if (p.main_loop == MainLoop::gemv || p.main_loop == MainLoop::tiny) return 0;
  Losses const losses = losses_of(recipe, problem, gpu, volume);
  double const once = volume.operand_bytes + volume.result_bytes,
               sums = volume.tiles * splits * p.block_m * p.block_n;
  return repack + losses.caution * (losses.launch_seconds + latency_seconds +
                                    once / (share_of_memory * gpu.memory_bytes_per_second) +
                                    seconds_of_partials(sums, recipe, gpu) + seconds_of_combining(splits));
}

}  // namespace cosmati::plan
