// Softmax and log-softmax of rows of 16-bit types: a row is kept in its 16-bit form, in half the registers,
// so that twice as many rows are in flight; exponentials are computed twice.
#pragma once
#include "cosmati/primitive/row_totals.h"

namespace cosmati {

// All runs are complete, and are along the rows.
template <class Traits>
struct PackedRowKernel : RowTotals<Traits> {
  using Totals = RowTotals<Traits>;
  using Totals::block, Totals::total, Totals::factor, Totals::log_of_sum;
  using Totals::cached, Totals::params, Totals::policy, Totals::operation, Totals::team;
  using typename Totals::Real, typename Totals::Sum;
  using X = typename AccessAt<0, typename Traits::Inputs>::type;
  using Pair = typename X::Pair;
  static constexpr int width = Traits::width, pairs = width / 2;

  Place const kept;
  bool const exists;
  Pair in[cached][pairs];

  COSMATI_DEVICE PackedRowKernel(PrimitiveParameters const& all, Team const& mine, int block_of_row,
                                 unsigned position)
      : Totals(all, mine, block_of_row),
        kept(all.axis, policy.kept, position < all.positions ? position : 0),
        exists(position < all.positions) {}

  COSMATI_DEVICE unsigned run_of(int u) const {
    return static_cast<unsigned>(team.member + (block + u * policy.cluster) * team.along);
  }
  COSMATI_DEVICE bool has(int u) const { return exists && run_of(u) < params.terms; }
  COSMATI_DEVICE Index offset(PrimitiveTensor const& tensor, int u) const {
    return kept.offset(tensor.stride) + run_of(u) * tensor.stride[policy.kept];
  }
  COSMATI_DEVICE void forget() {
    COSMATI_UNROLL
    for (int u = 0; u < cached; ++u) {
      COSMATI_UNROLL
      for (int i = 0; i < pairs; ++i) in[u][i].forget();
    }
  }

  COSMATI_DEVICE void run(RowShared<Traits>& shared) {
    Pair largest = X::pair_of(lowest<Real>());
    COSMATI_UNROLL
    for (int u = 0; u < cached; ++u) {
      COSMATI_UNROLL
      for (int i = 0; i < pairs; ++i) in[u][i] = X::pair_of(lowest<Real>());
      if (has(u)) X::load_pairs(params.tensor[0], offset(params.tensor[0], u), in[u]);
    }
    COSMATI_UNROLL
    for (int u = 0; u < cached; ++u) {
      COSMATI_UNROLL
      for (int i = 0; i < pairs; ++i) largest = in[u][i].larger(largest);
    }
    Real const max = larger(largest.template get<Real>(0), largest.template get<Real>(1)),
               base = Sum::base_of(max);
    Real sums[2] = {};
    COSMATI_UNROLL
    for (int u = 0; u < cached; ++u) {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e)
        sums[e % 2] += exponential(in[u][e / 2].template get<Real>(e % 2) - base);
    }
    total[0] = {max, sums[0] + sums[1]};
    this->join(shared);
    forget();
    write();
    if (policy.cluster > 1) arch::cluster_wait();
  }

  COSMATI_DEVICE void write() const {
    using Y = typename AccessAt<0, typename Traits::Outputs>::type;
    PrimitiveTensor const& y = params.tensor[primitive_inputs];
    COSMATI_UNROLL
    for (int u = 0; u < cached; ++u) {
      if (!has(u)) continue;
      Real out[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        Real const difference = in[u][e / 2].template get<Real>(e % 2) - total[0].max;
        out[e] = operation == RowOperation::softmax ? exponential(difference) * factor[0]
                                                    : difference - log_of_sum[0];
      }
      Y::store(y, ContiguousRange{offset(y, u), width}, out);
    }
  }
};

}  // namespace cosmati
