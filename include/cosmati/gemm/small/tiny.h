// The main loop of batches of tiny matrices: a warp loads the operands of one tile to its own part of shared
// memory and multiplies them. It waits only for its own loads, whose latency is hidden by the other warps of
// the multiprocessor.
#pragma once
#include "cosmati/gemm/steps.h"
#include "cosmati/gemm/traits.h"

namespace cosmati {

template <class Traits>
struct MainLoopOf<MainLoop::tiny, Traits> {
  struct SharedStorage {
    typename Traits::SharedStorage of_warp[Traits::policy.matrices];
  };

  // sums += a(m, k) * b(k, n) over the steps' k, for the tile of the sources; called by all threads of a
  // warp.
  COSMATI_DEVICE static void run(typename Traits::Product& sums, SharedStorage& all,
                                 typename Traits::SourceA const& a, typename Traits::SourceB const& b,
                                 StepRange steps) {
    constexpr int packs_deep = Traits::packs_deep;
    typename Traits::SharedStorage& shared = all.of_warp[arch::thread() / Traits::policy.team()];
    int const thread = Traits::thread();
    ThreadPlace const place = Traits::place(thread);
    typename Traits::LoaderA load_a(a, thread);
    typename Traits::LoaderB load_b(b, thread);
    typename Traits::Fragment fragment[2];
    COSMATI_NO_UNROLL
    for (int step = steps.first; step < steps.last; ++step) {
      if (step > steps.first) arch::warp_barrier();  // all lanes have read the previous step
      load(load_a, load_b, shared, Index{Traits::policy.block_k} * step);
      arch::warp_barrier();
      Traits::read(fragment[0], shared, 0, 0, place);
      COSMATI_UNROLL
      for (int pack = 0; pack < packs_deep; ++pack) {
        if (pack + 1 < packs_deep) Traits::read(fragment[(pack + 1) % 2], shared, 0, pack + 1, place);
        sums.add_product(fragment[pack % 2]);
      }
    }
  }

 private:
  template <class LoaderA, class LoaderB>
  COSMATI_DEVICE static void load(LoaderA& load_a, LoaderB& load_b, typename Traits::SharedStorage& shared,
                                  Index first_depth) {
    if constexpr (Traits::policy.multiply == Multiply::mma) {
      load_a.copy(shared.a[0], first_depth);
      load_b.copy(shared.b[0], first_depth);
      arch::commit_copies();
      arch::wait_copies<0>();
    } else {
      load_a.fetch(first_depth);
      load_b.fetch(first_depth);
      load_a.store(shared.a[0]);
      load_b.store(shared.b[0]);
    }
  }
};

}  // namespace cosmati
