// The rows of a thread, and the losses of a classifier: labels, their scores, and the sum of a block's
// losses.
#pragma once
#include "cosmati/primitive/row_totals.h"

namespace cosmati {

template <class Traits>
struct RowLosses : RowTotals<Traits> {
  using Totals = RowTotals<Traits>;
  using Totals::block, Totals::total, Totals::log_of_sum, Totals::results, Totals::params;
  using Totals::policy, Totals::team, Totals::is_loss;
  using typename Totals::Real;
  static constexpr int width = Traits::width;

  Place const kept;
  bool const exists;
  int const across_count;
  int label[results];   // -1: outside the classes
  Real score[results];  // of the label

  COSMATI_DEVICE RowLosses(PrimitiveParameters const& all, Team const& mine, int block_of_row,
                           unsigned position)
      : Totals(all, mine, block_of_row),
        kept(all.axis, policy.kept, position < all.positions ? position : 0),
        exists(position < all.positions),
        across_count(results == 1 ? 1 : run_count<width>(all.run_extent, kept.at[0])) {}

  COSMATI_DEVICE static Real not_a_number() { return lowest<Real>() - lowest<Real>(); }

  COSMATI_DEVICE void load_labels() {
    PrimitiveTensor const& tensor = params.tensor[primitive_inputs - 1];
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) {
      label[r] = 0;
      if (!is_loss() || !exists || r >= across_count) continue;
      using Labels = typename Traits::Function::Labels;
      int const given = Labels::integer(tensor, kept.offset(tensor.stride) + r * tensor.run_stride);
      label[r] = given >= 0 && given < params.classes ? given : -1;
    }
  }

  // Loads the scores of the labels, in flight while the exponentials are computed.
  COSMATI_DEVICE void load_scores_of_labels() {
    PrimitiveTensor const& scores = params.tensor[0];
    using Scores = typename AccessAt<0, typename Traits::Inputs>::type;
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) {
      score[r] = not_a_number();
      if (!is_loss() || !exists || !this->leads() || r >= across_count || label[r] < 0) continue;
      Real of_label[1];
      // Along a row the stride is that of a complete run; an element's stride is 1/width of it.
      Index const step = results == 1 ? scores.stride[policy.kept] / width : scores.stride[policy.kept];
      Scores::load(params, scores,
                   ContiguousRange{kept.offset(scores.stride) + r * scores.run_stride + label[r] * step, 1},
                   of_label);
      score[r] = static_cast<Real>(params.scalar[0]) * of_label[0];
    }
  }

  // Makes the total known to all threads of the row. The exchange waits for the score of the label, which
  // another block may replace by dx afterwards.
  COSMATI_DEVICE void join(RowShared<Traits>& shared) {
    if (policy.cluster > 1 && this->operation == RowOperation::loss_and_gradient)
      score[0] = arch::exchange(score[0], 0);
    Totals::join(shared);
  }

  // The factor of (softmax - (i == label)) in the gradient of row r.
  COSMATI_DEVICE Real gradient_scale(int r) const {
    return label[r] < 0 ? not_a_number() : static_cast<Real>(params.scalar[0] * params.scalar[1]);
  }

  // If runs are along the rows, writes the sum of the losses of the block's rows, so that fewer numbers are
  // left for the next launch; otherwise the loss of each row.
  COSMATI_DEVICE void write_losses([[maybe_unused]] RowShared<Traits>& shared) const {
    if constexpr (Traits::Outputs::size > 1) {
      if (!is_loss()) return;
      PrimitiveTensor const& losses = params.tensor[primitive_inputs + 1];
      using Losses = typename AccessAt<1, typename Traits::Outputs>::type;
      Real out[results];
      COSMATI_UNROLL
      for (int r = 0; r < results; ++r) out[r] = total[r].max - score[r] + log_of_sum[r];
      if (policy.runs_of_terms) {
        out[0] = exists ? out[0] : Real(0);
        if (team.across > 1 && !sum_of_block(shared, out[0])) return;
        if (!this->leads()) return;
        auto const group = static_cast<Index>(arch::block_x() / policy.cluster);
        Losses::store(losses, ContiguousRange{group, 1}, out);
      } else if (exists && this->leads()) {
        Losses::store(losses, ContiguousRange{kept.offset(losses.stride), across_count}, out);
      }
    }
  }

  // Replaces the loss of a row by the sum for the block's rows, always in the same order; returns whether
  // this thread has it.
  COSMATI_DEVICE bool sum_of_block(RowShared<Traits>& shared, Real& loss) const {
    if (team.member == 0) shared.loss[team.column] = loss;
    arch::block_barrier();
    int const lane = arch::thread();
    if (lane >= 32) return false;
    loss = 0;
    COSMATI_UNROLL
    for (int first = 0; first < Traits::threads; first += 32)
      if (first < team.across && first + lane < team.across) loss += shared.loss[first + lane];
    COSMATI_UNROLL
    for (int half = 16; half > 0; half /= 2) loss += arch::exchange(loss, half);
    return lane == 0;
  }
};

}  // namespace cosmati
