// The main loop of asynchronous copies (cp.async, sm_80 and later): `stages` shared buffers, one being
// multiplied while the others are filled. Operands that cp.async cannot copy pass through registers to the
// same buffers.
#pragma once
#include "cosmati/gemm/double_buffered.h"

namespace cosmati {

template <class Traits>
struct MainLoopOf<MainLoop::multistage, Traits> {
  using SharedStorage = typename Traits::SharedStorage;

  // sums += a(m, k) * b(k, n) over the steps' k, for the tile of the sources.
  COSMATI_DEVICE static void run(typename Traits::Product& sums, SharedStorage& shared,
                                 typename Traits::SourceA const& a, typename Traits::SourceB const& b,
                                 StepRange steps) {
    if (steps.first >= steps.last) return;
    constexpr int block_k = Traits::policy.block_k, packs_deep = Traits::packs_deep;
    constexpr int stages = Traits::policy.stages;
    int const thread = arch::thread();
    ThreadPlace const place = Traits::place(thread);
    typename Traits::LoaderA load_a(a, thread);
    typename Traits::LoaderB load_b(b, thread);
    typename Traits::Fragment fragment[2];

    // One commit group per step, empty at the end, so that the number of groups in flight stays constant.
    auto const copy = [&](int stage, int step) {
      if (step < steps.last) {
        load_a.copy(shared.a[stage], Index{block_k} * step);
        load_b.copy(shared.b[stage], Index{block_k} * step);
      }
      arch::commit_copies();
    };
    COSMATI_UNROLL
    for (int stage = 0; stage < stages - 1; ++stage) copy(stage, steps.first + stage);
    arch::wait_copies<stages - 2>();
    arch::block_barrier();
    Traits::read(fragment[0], shared, 0, 0, place);

    int read = 0, write = stages - 1;
    COSMATI_NO_UNROLL
    for (int step = steps.first; step < steps.last; ++step) {
      COSMATI_UNROLL
      for (int pack = 0; pack < packs_deep; ++pack) {
        if (pack + 1 < packs_deep) {
          Traits::read(fragment[(pack + 1) % 2], shared, read, pack + 1, place);
        } else {
          read = read + 1 < stages ? read + 1 : 0;
          arch::wait_copies<stages - 2>();
          arch::block_barrier();
          if (step + 1 < steps.last) Traits::read(fragment[0], shared, read, 0, place);
        }
        if (pack == 0) {  // into the buffer that was last read before the previous step's barrier
          copy(write, step + stages - 1);
          write = write + 1 < stages ? write + 1 : 0;
        }
        sums.add_product(fragment[pack % 2]);
      }
    }
    arch::wait_copies<0>();
  }
};

}  // namespace cosmati
