// Double-buffered main loop through registers: while one step is multiplied from a shared buffer, the next is
// loaded from global memory into registers and then stored to the other buffer. One barrier per step.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/steps.h"
#include "cosmati/gemm/traits.h"

namespace cosmati {

template <class Traits>
struct MainLoopOf<MainLoop::double_buffered, Traits> {
  using SharedStorage = typename Traits::SharedStorage;

  // sums += a(m, k) * b(k, n) over the steps' k, for the tile of the sources.
  COSMATI_DEVICE static void run(typename Traits::Product& sums, SharedStorage& shared,
                                 typename Traits::SourceA const& a, typename Traits::SourceB const& b,
                                 StepRange steps) {
    if (steps.first >= steps.last) return;
    constexpr int block_k = Traits::policy.block_k;
    int const thread = arch::thread();
    ThreadPlace const place = Traits::place(thread);
    typename Traits::LoaderA load_a(a, thread);
    typename Traits::LoaderB load_b(b, thread);
    typename Traits::Fragment fragment[2];

    load_a.fetch(Index{block_k} * steps.first);
    load_b.fetch(Index{block_k} * steps.first);
    load_a.store(shared.a[0]);
    load_b.store(shared.b[0]);
    arch::block_barrier();
    Traits::read(fragment[0], shared, 0, 0, place);

    // A condition around the loads would make the assembler move most of a step's multiplies before them and
    // expose their latency. In full tiles the last step is therefore peeled. In others, whose loads are
    // predicated anyway, it loads a step that is never used, which halves the code. Pairs of f16, whose code
    // is the longest and gains nothing from peeling, load the last step again instead.
    constexpr bool whole = Traits::policy.full_tiles, pairs = Traits::policy.multiply == Multiply::half2;
    constexpr int apart = whole && !pairs ? 1 : 0;
    int stage = 0;
    COSMATI_NO_UNROLL
    for (int step = steps.first; step < steps.last - apart; ++step) {
      int const next = whole && pairs ? imin(step + 1, steps.last - 1) : step + 1;
      multiply_step<true>(sums, fragment, load_a, load_b, shared, stage, next, place);
    }
    if constexpr (apart == 1)
      multiply_step<false>(sums, fragment, load_a, load_b, shared, stage, steps.last, place);
  }

 private:
  // Multiplies the step in `stage`, and with `more` loads step `next` into the other buffer.
  template <bool more>
  COSMATI_DEVICE static void multiply_step(typename Traits::Product& sums,
                                           typename Traits::Fragment (&fragment)[2],
                                           typename Traits::LoaderA& load_a, typename Traits::LoaderB& load_b,
                                           SharedStorage& shared, int& stage, int next,
                                           ThreadPlace const& place) {
    constexpr int block_k = Traits::policy.block_k, packs_deep = Traits::packs_deep;
    if constexpr (more) {
      load_a.fetch(Index{block_k} * next);
      load_b.fetch(Index{block_k} * next);
    }
    COSMATI_UNROLL
    for (int pack = 0; pack < packs_deep; ++pack) {
      if (pack + 1 < packs_deep) {
        Traits::read(fragment[(pack + 1) % 2], shared, stage, pack + 1, place);
      } else if constexpr (more) {  // the other buffer was last read before the previous step's barrier
        stage ^= 1;
        load_a.store(shared.a[stage]);
        load_b.store(shared.b[stage]);
        arch::block_barrier();
        Traits::read(fragment[0], shared, stage, 0, place);
      }
      sums.add_product(fragment[pack % 2]);
    }
  }
};

}  // namespace cosmati
