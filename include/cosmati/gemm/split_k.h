// Split-K: several blocks share a tile of D, each with a part of k. The block of the last part adds the
// others' sums in order, so that results are bit-identical in every run. Blocks wait only for blocks earlier
// in the grid.
#pragma once
#include "cosmati/gemm/partial_sums.h"

namespace cosmati {

// Returns true in the team that continues with the total in `sums`. `tile` numbers the tiles of all batches.
template <class Product, class Team>
COSMATI_DEVICE bool combine_parts(Product& sums, ScheduleArguments const& schedule, Index tile, int part,
                                  Team const& team) {
  using Partial = PartialSums<Product, Team>;
  int const others = schedule.splits - 1;
  if (others <= 0) return true;
  if (part < others) {
    Partial::publish(sums, schedule, tile * others + part, team);
    return false;
  }
  Partial::add(sums, schedule, tile * others, others, team);
  return true;
}

}  // namespace cosmati
