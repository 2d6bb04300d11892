// The four phases of a data gradient with stride 2 as one product: warp_specialized_kernel with a tile that
// holds the same cells of 2x2 pixels for every phase. A step of k loads one window of dy and the filters of
// the phases that have this tap. Two phases are adjacent columns of one wgmma; they are ordered so that those
// with a given tap are the first of a pair, since a wgmma may use the first registers of a larger one.
#pragma once
#include "cosmati/conv/merged_phases_arguments.h"
#include "cosmati/conv/phase_epilogue.h"
#include "cosmati/conv/tma_im2col.h"
#include "cosmati/gemm/persistent.h"
#include "cosmati/gemm/warp_specialized.h"

namespace cosmati {

// gemm_policy: the tile of one phase.
template <GemmPolicy gemm_policy, class SourceA, class SourceB, class Sum, class Epilogue, class Destination>
struct MergedPhasesTraits : WarpSpecializedTraits<gemm_policy, SourceA, SourceB, Sum, Epilogue, Destination> {
  using Phase = WarpSpecializedTraits<gemm_policy, SourceA, SourceB, Sum, Epilogue, Destination>;
  static constexpr GemmPolicy policy = gemm_policy;
  static_assert(policy.warp_m == 16 && policy.block_n == policy.warp_n && policy.cluster() == 1 &&
                    !policy.ping_pong && policy.partition == Partition::tiles,
                "merged phases: a warpgroup computes 64 cells and all columns of each phase");
  static_assert(merged_phases * policy.warp_n <= 256, "merged phases: at most 64 columns of each phase");
  static_assert(sizeof(typename Phase::TileB) == 16 * Phase::TileB::stride_of_tiles &&
                    sizeof(typename Phase::TileB) ==
                        policy.block_k * policy.block_n * sizeof(typename Phase::ElementB),
                "merged phases: the filters of a phase end where those of the next one begin");
  static_assert(!Phase::promotes, "merged phases: tensor cores must sum in full precision");
  // The sums of two phases: the first registers of a pair may be those of a smaller wgmma, without a copy.
  using Pair = WarpgroupAccumulators<Sum, policy.thread_m, 2 * policy.thread_n>;

  struct SharedStorage {
    typename Phase::TileA a[policy.stages];
    typename Phase::TileB b[policy.stages][merged_phases];
    typename Phase::ToDestination::SharedStorage epilogue;
    arch::Barrier full[policy.stages];
    arch::Barrier empty[policy.stages];
  };
  using SharedMemory = required::SharedMemoryOfABlock<static_cast<int>(sizeof(SharedStorage))>;
  static_assert(sizeof(SharedMemory) > 0);
};

// Selects the roles below.
template <class Traits>
struct MergedPhases {
  using Launch = MergedPhasesParameters<typename Traits::Params>;
  COSMATI_DEVICE static void prefetch(Launch const& launch) { launch.phase[largest_phase].a.prefetch(); }
};

template <class Traits>
struct WarpSpecializedRoles<Traits, MergedPhases<Traits>> {
  static constexpr GemmPolicy policy = Traits::policy;
  using Shared = typename Traits::SharedStorage;
  using Launch = typename MergedPhases<Traits>::Launch;
  using Params = typename Traits::Params;
  using TileB = typename Traits::TileB;
  using Pair = typename Traits::Pair;
  using Register = typename Pair::Register;
  using Ring = RingPlace<policy.stages>;
  using Tiles = TileScheduler<policy>;  // of one phase

  // Executed by one thread.
  COSMATI_DEVICE static void produce(Shared& shared, Launch const& launch) {
    Ring ring;
    for (Tiles tiles = scheduler(launch); tiles.more(); tiles.advance()) {
      TileIndex const tile = tiles.work().tile;
      ImageArguments const& image = launch.phase[largest_phase].a;
      WindowPlace const windows(image, tile.m * policy.block_m);
      for_each_step(launch, [&](TapKind const& kind, Digits const& tap) {
        arch::wait(shared.empty[ring.stage], ring.parity ^ 1);
        arch::Barrier& full = shared.full[ring.stage];
        arch::arrive_expecting(full, static_cast<int>(sizeof(typename Traits::TileA)) +
                                         kind.phases() * static_cast<int>(sizeof(TileB)));
        shared.a[ring.stage].copy(WindowBoxes{image, windows, tap}, full, 0, 0);
        for (int p = 0; p < merged_phases; ++p) {
          if (!kind.has(p)) continue;
          Digits const own{tap.first - (has_larger_rows(p) ? 0 : launch.rows.first_shared),
                           tap.middle - (has_larger_columns(p) ? 0 : launch.columns.first_shared), tap.last};
          shared.b[ring.stage][p].copy(FilterBoxes{launch.phase[p].b.map, tile.n * policy.block_n, own}, full,
                                       0, 0);
        }
        ring.advance();
      });
    }
  }

  // Executed by a warpgroup: multiplies its 64 cells of each tile, and stores them phase by phase.
  COSMATI_DEVICE static void consume(Shared& shared, Launch const& launch, int group) {
    Ring ring;
    unsigned long long const a = shared.a[0].descriptor(64 * group), b = shared.b[0][0].descriptor(0);
    for (Tiles tiles = scheduler(launch); tiles.more(); tiles.advance()) {
      TileIndex const tile = tiles.work().tile;
      prefetch(launch, tile);
      Pair sums[2];  // of phases 0 and 1, 2 and 3
      sums[0].keep_uninitialized();
      sums[1].keep_uninitialized();
      int last = ring.stage;  // of the step in flight
      multiply<0>(sums, a, b, shared, launch, ring, last);
      multiply<1>(sums, a, b, shared, launch, ring, last);
      multiply<2>(sums, a, b, shared, launch, ring, last);
      multiply<3>(sums, a, b, shared, launch, ring, last);
      arch::warpgroup_wait<0>();
      sums[0].fence_registers();
      sums[1].fence_registers();
      release(shared.empty[last]);
      store(sums, shared, launch, tile);
    }
    if constexpr (requires { Traits::ToDestination::finish(); }) Traits::ToDestination::finish();
  }

 private:
  COSMATI_DEVICE static Tiles scheduler(Launch const& launch) {
    Params const& one = launch.phase[0];
    return Tiles(one.m, one.n, policy.block_k, one.schedule, {0, 0, 0});
  }
  // The channels of dy, padded to whole steps.
  COSMATI_DEVICE static int depth(Launch const& launch) {
    return launch.phase[largest_phase].a.taps.last.divisor;
  }

  // Calls visit(kind, (r, s, channel)) for each step of k, in the order of the products.
  template <class Visit>
  COSMATI_DEVICE static void for_each_step(Launch const& launch, Visit const& visit) {
    COSMATI_NO_UNROLL
    for (int number = 0; number < tap_kinds; ++number) {
      TapKind const kind = tap_kind(number);
      for (int i = 0; i < launch.rows.count(kind.both_rows); ++i)
        for (int j = 0; j < launch.columns.count(kind.both_columns); ++j)
          for (int channel = 0; channel < depth(launch); channel += policy.block_k)
            visit(kind, Digits{launch.rows.tap(kind.both_rows, i), launch.columns.tap(kind.both_columns, j),
                               channel});
    }
  }

  // The steps of one kind of taps. While one is multiplied, waits for the previous one and releases its
  // stage.
  template <int number>
  COSMATI_DEVICE static void multiply(Pair (&sums)[2], unsigned long long a, unsigned long long b,
                                      Shared& shared, Launch const& launch, Ring& ring, int& last) {
    constexpr TapKind kind = tap_kind(number);
    int const steps = taps_of(kind, launch.rows, launch.columns) * (depth(launch) / policy.block_k);
    COSMATI_NO_UNROLL
    for (int step = 0; step < steps; ++step, ring.advance()) {
      bool const accumulates = number > 0 || step > 0;  // every phase has the first tap
      unsigned long long const from_a =
          a + static_cast<unsigned>(ring.stage * Traits::TileA::stride_of_tiles);
      unsigned long long const from_b =
          b + static_cast<unsigned>(ring.stage * merged_phases * TileB::stride_of_tiles);
      arch::wait(shared.full[ring.stage], ring.parity);
      arch::warpgroup_begin();
      multiply_pair<kind.both_rows ? 2 : 1>(sums[0], from_a, from_b, accumulates);
      if constexpr (kind.both_columns)
        multiply_pair<kind.both_rows ? 2 : 1>(sums[1], from_a, from_b + 2 * TileB::stride_of_tiles,
                                              accumulates);
      arch::warpgroup_commit();
      arch::warpgroup_wait<1>();
      if (accumulates) release(shared.empty[last]);
      last = ring.stage;
    }
  }
  // The first phases of a pair.
  template <int phases>
  COSMATI_DEVICE static void multiply_pair(Pair& sums, unsigned long long a, unsigned long long b,
                                           bool accumulates) {
    auto& part = reinterpret_cast<Register(&)[phases * Traits::Product::registers]>(sums.value[0]);
    COSMATI_UNROLL
    for (int pack = 0; pack < Traits::packs_deep; ++pack)
      arch::multiply_warpgroup<typename Traits::ElementA, typename Traits::ElementB, false,
                               Traits::SourceB::along == Along::mn, phases * policy.warp_n>(
          part, a + static_cast<unsigned>(Traits::TileA::pack_offset(pack)),
          b + static_cast<unsigned>(TileB::pack_offset(pack)), accumulates || pack > 0);
  }

  COSMATI_DEVICE static TileOfResult place_of(Params const& params, TileIndex tile) {
    Index const first_m = Index{tile.m} * policy.block_m, first_n = Index{tile.n} * policy.block_n;
    return {0, first_m, first_n, clamp_to_int(params.m - first_m), clamp_to_int(params.n - first_n)};
  }
  COSMATI_DEVICE static void prefetch(Launch const& launch, TileIndex tile) {
    for (Params const& params : launch.phase) PhaseEpilogue<Traits>::prefetch(params, place_of(params, tile));
  }
  COSMATI_DEVICE static void store(Pair const (&sums)[2], Shared& shared, Launch const& launch,
                                   TileIndex tile) {
    COSMATI_UNROLL
    for (int p = 0; p < merged_phases; ++p) {
      typename Traits::Product own;
      COSMATI_UNROLL
      for (int r = 0; r < Traits::Product::registers; ++r)
        own.value[0][r] = sums[p / 2].value[0][p % 2 * Traits::Product::registers + r];
      Params const& params = launch.phase[p];
      TileOfResult const at = place_of(params, tile);
      // Never true, but without this branch ptxas moves conversions of sums between the products and
      // serializes them.
      if (at.rows == 0 || at.columns == 0) continue;
      PhaseEpilogue<Traits>::run(own, shared.epilogue, params, at);
    }
  }

  // Signals that a warp has read a stage.
  COSMATI_DEVICE static void release(arch::Barrier& empty) {
    if (arch::thread() % 32 == 0) arch::arrive(empty);
  }
};

}  // namespace cosmati
