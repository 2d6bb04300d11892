// Split-K: several blocks share a tile of D, each a part of k. The block of the last part adds up the others'
// sums, in their order, so that the result has the same bits in every run. Whoever is waited for comes
// earlier in the grid.
#pragma once
#include "cosmati/gemm/partial_sums.h"

namespace cosmati {

// True in the team that goes on with the whole sum in `sums`. `tile` numbers the tiles of all batches.
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
