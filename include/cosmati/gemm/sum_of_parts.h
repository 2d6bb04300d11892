// The second kernel of split-K in parallel: adds the sums that the blocks of each part of k stored, in a
// fixed order, and applies the epilogue. Every multiprocessor takes part in the addition, whereas with
// Partition::split_k one block of each tile adds all other parts.
#pragma once
#include "cosmati/gemm/epilogue.h"
#include "cosmati/gemm/steps.h"
#include "cosmati/gemm/sum_of_parts_arguments.h"

namespace cosmati {

// Sum: the type of the stored parts, float or int.
template <SumOfPartsBlock block_, class Sum_, class Epilogue_, class Destination_>
struct SumOfPartsTraits {
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  static constexpr SumOfPartsBlock block = block_;
  static constexpr int groups = block.groups, width = SumOfPartsBlock::width, runs = block.runs();
  static_assert(EpilogueRequirements<Epilogue>::satisfied && sizeof(Sum) == 4);

  using Params = SumOfPartsParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  using Run = Vector<Sum, width>;
  struct SharedStorage {
    Run sums[groups > 1 ? groups : 1][groups > 1 ? runs : 1];
  };

  // Adds parts [first, last) of a run in order. Several loads are in flight at a time.
  COSMATI_DEVICE static Run add(Sum const* from, Index part_pitch, int first, int last) {
    constexpr int at_once = 8;
    Run total = {};
    COSMATI_NO_UNROLL
    for (int part = first; part < last; part += at_once) {
      Run loaded[at_once];
      COSMATI_UNROLL
      for (int i = 0; i < at_once; ++i)
        if (part + i < last) loaded[i] = arch::load<Run>(from + (part + i) * part_pitch);
      COSMATI_UNROLL
      for (int i = 0; i < at_once; ++i)
        if (part + i < last) add(total, loaded[i]);
    }
    return total;
  }
  COSMATI_DEVICE static void add(Run& total, Run const& more) {
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) total[e] += more[e];
  }
};

// Grid: x: blocks of runs of all rows; z: matrices.
template <class Traits>
COSMATI_KERNEL(SumOfPartsBlock::threads, 1)
sum_of_parts_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Run = typename Traits::Run;
  using Real = typename Traits::Epilogue::Real;
  constexpr int width = Traits::width;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  arch::let_next_kernel_start();
  arch::wait_for_previous_kernel();

  int const lane = arch::thread() % Traits::runs, group = arch::thread() / Traits::runs;
  Index const runs_of_row = ceiling_divide(params.n, width);
  Index const run = Index{arch::block_x()} * Traits::runs + lane, row = run / runs_of_row;
  int const n = static_cast<int>(run - row * runs_of_row) * width, m = static_cast<int>(row);
  Index const matrix = params.first_batch + arch::block_z();
  bool const exists = row < params.m;

  Run total = {};
  if (exists) {
    StepRange const parts = part_of_steps(params.count, group, Traits::groups);
    total = Traits::add(static_cast<typename Traits::Sum const*>(params.parts) +
                            matrix * params.count * params.part_pitch + row * params.pitch + n,
                        params.part_pitch, parts.first, parts.last);
  }
  if constexpr (Traits::groups > 1) {
    shared.sums[group][lane] = total;
    arch::block_barrier();
    if (group > 0) return;
    COSMATI_UNROLL
    for (int other = 1; other < Traits::groups; ++other) Traits::add(total, shared.sums[other][lane]);
  }
  if (!exists) return;
  Real value[width];
  COSMATI_UNROLL
  for (int e = 0; e < width; ++e) value[e] = arch::number_cast<Real>(total[e]);
  int const valid = params.n - n < width ? static_cast<int>(params.n) - n : width;
  typename Traits::Epilogue::Tile const tile(params.epilogue, matrix, 0, 0);
  typename Traits::Destination::Tile const d(params.d, matrix, 0, 0);
  Traits::Epilogue::apply(tile, m, n, valid, value);
  d.store(m, n, valid, value);
}

}  // namespace cosmati
