// Producer warpgroup of the warp_specialized kernel for an operand that TMA cannot load: its threads copy it
// by cp.async into the same swizzled tiles, while TMA loads the other operand.
#pragma once
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/gemm/persistent.h"
#include "cosmati/gemm/ring.h"
#include "cosmati/gemm/tensor_source.h"
#include "cosmati/gemm/tile_copier.h"

namespace cosmati {

// Registers per copying thread; unaligned elements pass through registers.
template <class SourceA, class SourceB>
struct CopiedOperands {
  template <class Source>
  COSMATI_CONSTEXPR static bool is_aligned() {
    if constexpr (is_copied<Source>)
      return Source::width * static_cast<int>(sizeof(typename Source::Element)) >= 4;
    return true;
  }
  static constexpr int registers = is_aligned<SourceA>() && is_aligned<SourceB>() ? 72 : 104;
};

// cp.async writes through the generic proxy, and wgmma reads through the asynchronous one. A writing thread
// therefore waits for its copies, calls publish_to_async, and its warp arrives at the stage's barrier. This
// happens after the copies of the next `lag` steps have been started, which are then in flight. Consumers
// release a stage after starting the next step, so two of the stages are not in flight.
template <class Roles>
struct CopyingProducer {
  using Traits = typename Roles::Own;
  using SourceA = typename Traits::SourceA;
  using SourceB = typename Traits::SourceB;
  static constexpr GemmPolicy policy = Traits::policy;
  static constexpr int threads = 128, stages = policy.stages;
  static constexpr int lag = imin(stages / 2, stages - 2);

  // Loads the tiles of one operand: by copies of all threads or, in the specialization, by TMA.
  template <class Source, class Tile>
  struct Operand {
    TileCopier<Source, Tile, threads> copier;
    COSMATI_DEVICE Operand(MatrixArguments const& arguments, Index batch, int first_outer, Index outer,
                           Index k, int thread)
        : copier(arguments, batch, first_outer, outer, k, thread) {}
    COSMATI_DEVICE void load(Tile& tile, arch::Barrier&, int first_k, int) const {
      copier.copy(tile, first_k);
    }
  };
  template <class Source, class Tile>
  requires(!is_copied<Source>) struct Operand<Source, Tile> {
    typename Source::Lines lines;
    int bytes;
    COSMATI_DEVICE Operand(typename Source::Arguments const& maps, Index matrix, int first, Index outer,
                           Index, int)
        : lines(maps, maps.map, first, matrix), bytes(loaded_bytes<Source, Tile>(outer)) {}
    COSMATI_DEVICE void load(Tile& tile, arch::Barrier& full, int first_k, int thread) const {
      if (thread != 0) return;
      arch::arrive_expecting(full, bytes);
      tile.copy(lines.step(first_k), full, 0, 1);
    }
  };

  COSMATI_DEVICE static void produce(typename Roles::Shared& shared, typename Roles::Params const& params) {
    int const thread = arch::thread() % threads;
    RingPlace<stages> ring, late;  // late: the first step whose copies have not been waited for
    int in_flight = 0;
    for (auto tiles = Roles::scheduler(params); tiles.more(); tiles.advance()) {
      TileOfWork const work = tiles.work();
      Operand<SourceA, typename Traits::TileA> const a(params.a, work.batch, work.tile.m * policy.block_m,
                                                       params.m, params.k, thread);
      Operand<SourceB, typename Traits::TileB> const b(params.b, work.batch, work.tile.n * policy.block_n,
                                                       params.n, params.k, thread);
      COSMATI_NO_UNROLL
      for (int step = work.steps.first; step < work.steps.last; step += policy.cluster_k, ring.advance()) {
        arch::wait(shared.empty[ring.stage], ring.parity ^ 1);
        arch::Barrier& full = shared.full[ring.stage];
        a.load(shared.a[ring.stage], full, step * policy.block_k, thread);
        b.load(shared.b[ring.stage], full, step * policy.block_k, thread);
        arch::commit_copies();
        if (++in_flight <= lag) continue;
        arch::wait_copies<lag>();
        hand_over(shared.full[late.stage]);
        late.advance();
        --in_flight;
      }
    }
    arch::wait_copies<0>();
    for (; in_flight > 0; --in_flight, late.advance()) hand_over(shared.full[late.stage]);
  }

 private:
  COSMATI_DEVICE static void hand_over(arch::Barrier& full) {
    arch::publish_to_async();
    arch::warp_barrier();
    if (arch::thread() % 32 == 0) arch::arrive(full);
  }
};

}  // namespace cosmati
