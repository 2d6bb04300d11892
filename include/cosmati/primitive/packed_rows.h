// Softmax, log-softmax and losses of rows of 16-bit types: a row is kept in its 16-bit form, in half the
// registers, so that twice as many rows are in flight; exponentials are computed twice.
#pragma once
#include "cosmati/primitive/row_losses.h"

namespace cosmati {

// All runs are complete, and are along the rows, whose elements are adjacent. Scores of losses are not
// scaled: scalar[0] is 1.
template <class Traits>
struct PackedRowKernel : RowLosses<Traits> {
  using Base = RowLosses<Traits>;
  using Base::block, Base::total, Base::factor, Base::log_of_sum, Base::kept, Base::exists;
  using Base::cached, Base::params, Base::policy, Base::operation, Base::team;
  using typename Base::Real, typename Base::Sum;
  using X = typename AccessAt<0, typename Traits::Inputs>::type;
  using Pair = typename X::Pair;
  static constexpr int width = Traits::width, pairs = width / 2;

  Pair in[cached][pairs];

  COSMATI_DEVICE PackedRowKernel(PrimitiveParameters const& all, Team const& mine, int block_of_row,
                                 unsigned position)
      : Base(all, mine, block_of_row, position) {}

  COSMATI_DEVICE unsigned run_of(int u) const {
    return static_cast<unsigned>(team.member + (block + u * policy.cluster) * team.along);
  }
  COSMATI_DEVICE bool has(int u) const { return exists && run_of(u) < params.terms; }
  // Run u of this thread begins at first_of(tensor) + u * distance().
  COSMATI_DEVICE Index first_of(PrimitiveTensor const& tensor) const {
    return kept.offset(tensor.stride) + run_of(0) * Index{width};
  }
  COSMATI_DEVICE Index distance() const { return policy.cluster * team.along * Index{width}; }
  COSMATI_DEVICE void forget() {
    COSMATI_UNROLL
    for (int u = 0; u < cached; ++u) {
      COSMATI_UNROLL
      for (int i = 0; i < pairs; ++i) in[u][i].forget();
    }
  }

  COSMATI_DEVICE void run(RowShared<Traits>& shared) {
    this->start(shared);
    PrimitiveTensor const& x = params.tensor[0];
    Index const first = first_of(x);
    Pair largest = X::pair_of(lowest<Real>());
    COSMATI_UNROLL
    for (int u = 0; u < cached; ++u) {
      COSMATI_UNROLL
      for (int i = 0; i < pairs; ++i) in[u][i] = X::pair_of(lowest<Real>());
      if (has(u)) X::load_pairs(x, first + u * distance(), in[u]);
    }
    this->load_labels();
    this->load_scores_of_labels();
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
    this->write_losses(shared);
    if (operation != RowOperation::loss) {
      forget();
      write();
    }
  }

  COSMATI_DEVICE void write() const {
    using Y = typename AccessAt<0, typename Traits::Outputs>::type;
    PrimitiveTensor const& y = params.tensor[primitive_inputs];
    Index const first = first_of(y);
    bool const of_loss = operation == RowOperation::loss_and_gradient;
    Real const scale = of_loss ? this->gradient_scale(0) : Real(1), scaled = factor[0] * scale;
    COSMATI_UNROLL
    for (int u = 0; u < cached; ++u) {
      if (!has(u)) continue;
      Real out[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        Real const difference = in[u][e / 2].template get<Real>(e % 2) - total[0].max;
        out[e] = operation == RowOperation::log_softmax ? difference - log_of_sum[0]
                                                        : exponential(difference) * scaled;
      }
      int const of_label = this->label[0] - static_cast<int>(run_of(u)) * width;
      if (of_loss && of_label >= 0 && of_label < width) {
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) out[e] -= e == of_label ? scale : Real(0);
      }
      Y::store(y, ContiguousRange{first + u * distance(), width}, out);
    }
  }
};

}  // namespace cosmati
