// Warp-specialized kernel (sm_90a): one producer warp issues TMA loads into a ring of stages; consumer
// warpgroups multiply them with wgmma and store the results. Blocks are persistent, so the ring fills with
// the next tile's operands while a tile is stored.
#pragma once
#include "cosmati/gemm/cluster_sum.h"
#include "cosmati/gemm/copying_producer.h"
#include "cosmati/gemm/ring.h"
#include "cosmati/gemm/stream_k.h"
#include "cosmati/gemm/tensor_epilogue.h"
#include "cosmati/gemm/warpgroup_epilogue.h"
#include "cosmati/gemm/warpgroup_requirements.h"

namespace cosmati {

template <bool present, class Storage>
struct ConditionalStorage : Storage {};
template <class Storage>
struct ConditionalStorage<false, Storage> {};

template <GemmPolicy gemm_policy, class SourceA_, class SourceB_, class Sum, class Epilogue_,
          class Destination_>
struct WarpSpecializedTraits : CheckedWarpgroups<gemm_policy, SourceA_, SourceB_, Sum>,
                               WarpgroupProduct<gemm_policy, SourceA_, SourceB_, Sum> {
  static constexpr GemmPolicy policy = gemm_policy;
  using Operands = WarpgroupProduct<policy, SourceA_, SourceB_, Sum>;
  using TileA = typename Operands::TileA;
  using TileB = typename Operands::TileB;
  using SourceA = SourceA_;
  using SourceB = SourceB_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  static_assert(EpilogueRequirements<Epilogue>::satisfied);
  using Params = GemmParameters<typename SourceA_::Arguments, typename SourceB_::Arguments,
                                typename Epilogue::Arguments, typename Destination::Arguments>;

  static constexpr int groups = policy.consumer_warps() / 4;  // warpgroups that multiply
  static constexpr int threads = policy.threads();
  static constexpr int cluster = policy.cluster();  // blocks
  static constexpr int sharing =
      policy.cluster_m * policy.cluster_n;  // blocks that load shared tiles for one another
  // Registers per thread, in multiples of 8: producers release registers that consumers need for their sums.
  static constexpr int launch_registers = imin(65536 / policy.blocks / threads, 255) / 8 * 8;
  static constexpr bool copies_a = is_copied<SourceA>, copies_b = is_copied<SourceB>,
                        copies = copies_a || copies_b;
  static constexpr int producer_registers = copies ? CopiedOperands<SourceA, SourceB>::registers : 40;
  // Arrivals on `full` per phase: one TMA thread, four copying warps.
  static constexpr int full_arrivals = (copies_a && copies_b ? 0 : 1) + (copies ? 4 : 0);
  static constexpr int consumer_registers =
      imin((launch_registers * threads - 128 * producer_registers) / (128 * groups), 240) / 8 * 8;

  using ClusterReduction = ClusterSum<typename Operands::Product, policy.cluster_k, 32 * Operands::warps>;
  using Result = WarpgroupProduct<policy.slice(), SourceA_, SourceB_, Sum>;  // a slice of each row
  using ToDestination = EpilogueScheduleOf<policy.epilogue, Result, Epilogue, Destination>;

  struct SharedStorage {
    TileA a[policy.stages];
    TileB b[policy.stages];
    typename ToDestination::SharedStorage epilogue;
    ConditionalStorage<(policy.cluster_k > 1), typename ClusterReduction::SharedStorage> parts;
    arch::Barrier full[policy.stages];   // the bytes of both operands have arrived
    arch::Barrier empty[policy.stages];  // all consumers of the cluster have read them
  };
  using SharedMemory = required::SharedMemoryOfABlock<static_cast<int>(sizeof(SharedStorage))>;
  static_assert(sizeof(SharedMemory) > 0);
};

// The warpgroups that share a tile; `id` is their named barrier.
template <class Traits>
struct ConsumerTeam {
  static constexpr int threads = 32 * Traits::warps;
  int id;
  COSMATI_DEVICE static int thread() { return arch::thread() % threads; }
  COSMATI_DEVICE void barrier() const { arch::named_barrier(id, threads); }
};

// Scheduler provides the tiles of this block and their problems: ProblemScheduler or GroupScheduler.
template <class Traits, class Scheduler = ProblemScheduler<Traits>>
struct WarpSpecializedRoles {
  using Own = Traits;
  static constexpr GemmPolicy policy = Traits::policy;
  using Shared = typename Traits::SharedStorage;
  using Params = typename Traits::Params;
  using Launch = typename Scheduler::Launch;
  using Ring = RingPlace<policy.stages>;

  COSMATI_DEVICE static Scheduler scheduler(Launch const& launch) { return Scheduler(launch, place()); }
  COSMATI_DEVICE static ClusterPlace place() {
    if constexpr (Traits::cluster == 1) return {0, 0, 0};
    int const block = arch::block_of_cluster();
    if constexpr (Traits::sharing == 1) return {0, 0, block};
    return {block % policy.cluster_m, block / policy.cluster_m, 0};
  }

  // Executed by one thread: waits for an empty stage and issues TMA loads to fill it, for each step of each
  // tile.
  COSMATI_DEVICE static void produce(Shared& shared, Launch const& launch) {
    ClusterPlace const here = place();
    auto const row =
        static_cast<unsigned short>(blocks_of_row() << here.m);  // blocks with the same tile of A
    auto const column = static_cast<unsigned short>(first_column << here.n * policy.cluster_m);  // of B
    Ring ring;
    MapUse<decltype(Params::a)> map_of_a;
    MapUse<decltype(Params::b)> map_of_b;
    KeptTile<policy.stages> kept_b;
    for (Scheduler tiles = scheduler(launch); tiles.more(); tiles.advance()) {
      TileOfWork const work = tiles.work();
      auto const& maps_a = tiles.problem().a;
      auto const& maps_b = tiles.problem().b;
      typename Traits::SourceA::Lines const a(maps_a, map_of_a(maps_a, work.batch),
                                              work.tile.m * policy.block_m, work.batch);
      typename Traits::SourceB::Lines const b(maps_b, map_of_b(maps_b, work.batch),
                                              work.tile.n * policy.block_n, work.batch);
      // Parts of k have different tiles of B even if each is a single step.
      bool const is_single =
          policy.partition == Partition::tiles && policy.cluster_k == 1 && work.steps.last == 1;
      bool const has_b = kept_b.holds(&maps_b, work.tile.n, work.batch, is_single);
      int const bytes =
          loaded_bytes<typename Traits::SourceA, typename Traits::TileA>(tiles.problem().m) +
          (has_b ? 0 : loaded_bytes<typename Traits::SourceB, typename Traits::TileB>(tiles.problem().n));
      COSMATI_NO_UNROLL
      for (int step = work.steps.first; step < work.steps.last; step += policy.cluster_k, ring.advance()) {
        arch::wait(shared.empty[ring.stage], ring.parity ^ 1);
        arch::Barrier& full = shared.full[ring.stage];
        arch::arrive_expecting(full, bytes);
        int const first_k = step * policy.block_k;
        shared.a[ring.stage].copy(a.step(first_k), full, here.n, row);
        if (!has_b) shared.b[ring.stage].copy(b.step(first_k), full, here.m, column);
      }
    }
    // No block exits before the others' last arrivals at its barriers.
    if constexpr (Traits::sharing > 1)
      for (int stage = 0; stage < policy.stages; ++stage, ring.advance())
        arch::wait(shared.empty[ring.stage], ring.parity ^ 1);
  }

  // Executed by a warpgroup: multiplies its part of each tile as stages fill, and stores it. With ping_pong
  // it computes every other tile alone and stores it while the other warpgroup multiplies.
  COSMATI_DEVICE static void consume(Shared& shared, Launch const& launch, int group) {
    typename Traits::Operands const operands(shared.a[0], shared.b[0], group);
    typename Traits::Fragments fragments;
    ClusterPlace const here = place();
    Ring ring;
    int turn = 0;
    for (Scheduler tiles = scheduler(launch); tiles.more(); tiles.advance(), ++turn) {
      Params const& params = tiles.problem();
      StepRange const steps = tiles.steps();
      if (policy.ping_pong && turn % 2 != group) {
        ring.advance(steps.last - steps.first);
        continue;
      }
      typename Traits::Product sums;  // (thread_m, thread_n)
      // Stage barriers distinguish only odd and even rounds, so a warpgroup must not wait for them before its
      // turn.
      if (policy.ping_pong && turn > 0) arch::named_barrier(1 + group, 256);
      int const last = multiply(sums, operands, fragments, shared, ring, steps);
      if (policy.ping_pong && !tiles.is_last()) arch::named_arrive(1 + (group ^ 1), 256);
      TileOfWork work = tiles.work();
      arch::fence_registers(work.tile.m),
          arch::fence_registers(work.tile.n);  // computed while the last products are in flight
      Index const first_m = Index{work.tile.m} * policy.block_m,
                  first_n = Index{work.tile.n} * policy.block_n + here.k * policy.slice().block_n;
      // Parts of k that another kernel adds are matrices of their own.
      bool const as_parts = policy.partition == Partition::split_k_parallel;
      Index const matrix = as_parts ? work.batch * params.schedule.splits + work.part : work.batch;
      TileOfResult const at{matrix, first_m, first_n, clamp_to_int(params.m - first_m),
                            clamp_to_int(params.n - first_n)};
      auto operand = prefetch_epilogue(params, at);
      arch::warpgroup_wait<0>();
      sums.fence_registers();
      arch::fence_registers(operand);
      if (!Traits::promotes && steps.first < steps.last) release(shared.empty[last]);
      auto&& result = slice(sums, shared, here, turn);
      ConsumerTeam<Traits> const team{3 + (policy.ping_pong ? group : 0)};
      if constexpr (policy.partition != Partition::tiles)
        if (!tiles.combine(result, params.schedule, work, team)) continue;
      // A cluster may extend beyond D. Without this branch, ptxas moves conversions of sums between the
      // products and serializes them.
      if (at.rows == 0 || at.columns == 0) continue;
      Traits::ToDestination::run(result, shared.epilogue, params.epilogue, params.d, at);
    }
    if constexpr (policy.cluster_k > 1) Traits::ClusterReduction::finish(shared.parts, turn);
    if constexpr (requires { Traits::ToDestination::finish(); }) Traits::ToDestination::finish();
  }

 private:
  // Prefetches epilogue operands while the last products are in flight.
  COSMATI_DEVICE static auto prefetch_epilogue(Params const& params, TileOfResult const& at) {
    using Result = typename Traits::Result;
    if constexpr (requires { Traits::Epilogue::operands; }) {
      constexpr GemmPolicy part = policy.slice();
      constexpr auto partition_m = Result::partition_m;
      ThreadPlace const place = Result::place(arch::thread());
      int const m = partition_m.position(place.warp_m, 0, 0), n = place.warp_n * part.warp_n;
      auto const row = [](int i) { return Result::row_of_warp(i); };
      return Traits::Epilogue::template prefetch<part.warp_m, part.warp_n>(
          params.epilogue, at.batch, at.first_m + m, at.first_n + n, arch::thread() % 32, row, at.rows - m,
          at.columns - n);
    } else {
      return 0;
    }
  }

  COSMATI_DEVICE static decltype(auto) slice(typename Traits::Product& sums, Shared& shared,
                                             ClusterPlace here, int round) {
    if constexpr (policy.cluster_k > 1)
      return Traits::ClusterReduction::slice(sums, shared.parts, here.k, round);
    else
      return (sums);
  }

  // While one step is multiplied, waits for the previous one and releases its stage. Returns the stage of the
  // last step, which is still in flight.
  COSMATI_DEVICE static int multiply(typename Traits::Product& sums,
                                     typename Traits::Operands const& operands,
                                     typename Traits::Fragments& fragments, Shared& shared, Ring& ring,
                                     StepRange steps) {
    if (Traits::promotes || steps.first >= steps.last)
      sums.clear();
    else
      sums.keep_uninitialized();
    int before = ring.stage;
    COSMATI_NO_UNROLL
    for (int step = steps.first; step < steps.last; step += policy.cluster_k, ring.advance()) {
      arch::wait(shared.full[ring.stage], ring.parity);
      operands.multiply(sums, fragments, ring.stage, step > steps.first);
      if constexpr (Traits::promotes) {
        release(shared.empty[ring.stage]);
        continue;
      }
      arch::warpgroup_wait<Traits::groups_of_a_step>();
      if (step > steps.first) release(shared.empty[before]);
      before = ring.stage;
    }
    return before;
  }

  // Signals that a warp has read a stage, to each block that may write it.
  COSMATI_DEVICE static void release(arch::Barrier& empty) {
    int const lane = arch::thread() % 32;
    if constexpr (Traits::sharing == 1) {
      if (lane == 0) arch::arrive(empty);
    } else {
      if (lane < Traits::sharing) arch::arrive_at(empty, lane);
    }
  }

  // Masks of the blocks of a cluster in its first row and its first column of tiles.
  COSMATI_CONSTEXPR static int blocks_of_row() {
    int mask = 0;
    for (int n = 0; n < policy.cluster_n; ++n) mask |= 1 << n * policy.cluster_m;
    return mask;
  }
  static constexpr int first_column = (1 << policy.cluster_m) - 1;
};

// Grid: as many clusters as can be resident, at most one per tile; block: the consumers, then the producer
// warpgroup.
template <class Traits, class Scheduler = ProblemScheduler<Traits>>
COSMATI_CLUSTER_KERNEL(Traits::threads, Traits::policy.blocks, Traits::cluster)
warp_specialized_kernel(COSMATI_PARAMETER typename Scheduler::Launch launch) {
  using Roles = WarpSpecializedRoles<Traits, Scheduler>;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  arch::let_next_kernel_start();
  if (arch::thread() == 0) {
    Scheduler::prefetch(launch);
    COSMATI_UNROLL
    for (int stage = 0; stage < Traits::policy.stages; ++stage) {
      arch::init(shared.full[stage], Traits::full_arrivals);
      arch::init(shared.empty[stage], Traits::warps * Traits::sharing);
    }
    if constexpr (Traits::policy.cluster_k > 1) Traits::ClusterReduction::init(shared.parts);
    arch::publish_barriers();
    if constexpr (requires { launch.m; }) {
      permit_unwritten(shared.a, loaded_bytes<typename Traits::SourceA, typename Traits::TileA>(launch.m));
      permit_unwritten(shared.b, loaded_bytes<typename Traits::SourceB, typename Traits::TileB>(launch.n));
    }
  }
  if constexpr (Traits::cluster > 1) {
    arch::cluster_arrive_relaxed();
    arch::cluster_wait();
  } else {
    arch::block_barrier();
  }
  arch::wait_for_previous_kernel();

  if (int const group = arch::uniform(arch::thread() / 128); group == Traits::groups) {
    if constexpr (Traits::groups > 1) arch::release_registers<Traits::producer_registers>();
    if constexpr (Traits::copies)
      CopyingProducer<Roles>::produce(shared, launch);
    else if (arch::thread() == 128 * Traits::groups)
      Roles::produce(shared, launch);
  } else {
    if constexpr (Traits::groups > 1) arch::acquire_registers<Traits::consumer_registers>();
    Roles::consume(shared, launch, group);
  }
}

}  // namespace cosmati
