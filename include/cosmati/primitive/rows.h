// Softmax, its logarithm, their gradients, and the losses of a classifier: all operations that need a sum
// over a row before writing it. Rows that fit are read once and kept in registers.
#pragma once
#include "cosmati/primitive/packed_rows.h"

namespace cosmati {

template <class Traits>
struct RowKernel : RowTotals<Traits> {
  using Totals = RowTotals<Traits>;
  using Totals::block, Totals::total, Totals::factor, Totals::log_of_sum, Totals::exponentials;
  using Totals::cached, Totals::results, Totals::params, Totals::policy, Totals::operation, Totals::team;
  using Totals::is_loss, Totals::keeps_exponentials, Totals::leads;
  using typename Totals::Real, typename Totals::Sum;
  static constexpr int width = Traits::width, unroll = Traits::unroll, inputs = Traits::inputs;
  // Runs loaded before the first use: the thread's entire share of a row, or a few runs of it.
  static constexpr int loaded = cached > 0 ? cached : unroll;

  int const members;  // threads of a row
  Place const kept;
  bool const exists;
  int const across_count;
  Real in[loaded][inputs][width];
  int counts[loaded];

  COSMATI_DEVICE RowKernel(PrimitiveParameters const& all, Team const& mine, int block_of_row,
                           unsigned position)
      : Totals(all, mine, block_of_row),
        members(mine.along * policy.cluster),
        kept(all.axis, policy.kept, position < all.positions ? position : 0),
        exists(position < all.positions),
        across_count(results == 1 ? 1 : run_count<width>(all.run_extent, kept.at[0])) {}

  COSMATI_DEVICE Index offset(PrimitiveTensor const& tensor, unsigned run) const {
    return kept.offset(tensor.stride) + run * tensor.stride[policy.kept];
  }

  // Elements that do not exist contribute nothing to the sum. Scores of losses are scaled here.
  COSMATI_DEVICE void load(unsigned first) {
    Real const absent = exponentials() ? lowest<Real>() : Real(0);
    auto const score_scale = static_cast<Real>(params.scalar[0]);
    RawInputs<Traits> raw[loaded];
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      unsigned const run = first + static_cast<unsigned>(u * members);
      counts[u] = 0;
      if (!exists || run >= params.terms) continue;
      counts[u] = policy.whole           ? width
                  : policy.runs_of_terms ? run_count<width>(params.run_extent, run)
                                         : across_count;
      raw[u].fetch(
          params, [&](PrimitiveTensor const& tensor) { return offset(tensor, run); },
          policy.whole ? width : counts[u]);
    }
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      COSMATI_UNROLL
      for (int i = 0; i < inputs; ++i) {
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) in[u][i][e] = absent;
      }
      if (counts[u] == 0) continue;
      raw[u].unpack(params, in[u]);
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        if (is_loss()) in[u][0][e] *= score_scale;
        if (exponentials() && !policy.whole && e >= counts[u]) in[u][0][e] = absent;
      }
    }
  }

  COSMATI_DEVICE void add() {
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) {
      // Several independent sums, since dependent additions have latency.
      constexpr int chains = results == 1 ? width : 1;
      Real max = lowest<Real>(), sums[chains] = {};
      COSMATI_UNROLL
      for (int u = 0; u < loaded; ++u) {
        COSMATI_UNROLL
        for (int c = 0; c < chains; ++c)
          if (exponentials())
            max = larger(in[u][0][r + c], max);
          else
            sums[c] += gradient_term(u, r + c);
      }
      Real const base = Sum::base_of(max);
      COSMATI_UNROLL
      for (int u = 0; u < loaded; ++u) {
        COSMATI_UNROLL
        for (int c = 0; c < chains; ++c)
          if (exponentials()) {
            Real const value = exponential(in[u][0][r + c] - base);
            if (keeps_exponentials()) in[u][0][r + c] = value;
            sums[c] += value;
          }
      }
      COSMATI_UNROLL
      for (int half = chains / 2; half > 0; half /= 2) {
        COSMATI_UNROLL
        for (int c = 0; c < half; ++c) sums[c] += sums[c + half];
      }
      if (!exponentials())
        total[r].sum += sums[0];
      else if (cached > 0)
        total[r] = {max, sums[0]};
      else
        total[r].join(max, sums[0]);
    }
  }

  COSMATI_DEVICE Real gradient_term(int u, int e) const {
    if constexpr (inputs > 1)
      return operation == RowOperation::softmax_gradient ? in[u][0][e] * in[u][1][e] : in[u][1][e];
    else
      return in[u][0][e];
  }

  COSMATI_DEVICE Real result(int u, int e, unsigned run, int label) const {
    int const r = results == 1 ? 0 : e;
    Real const x = in[u][0][e];
    switch (operation) {
      case RowOperation::softmax: return probability(x, r);
      case RowOperation::log_softmax: return x - total[r].max - log_of_sum[r];
      case RowOperation::softmax_gradient:
        if constexpr (inputs > 1) return x * (in[u][1][e] - total[r].sum);
        break;
      case RowOperation::log_softmax_gradient:
        if constexpr (inputs > 1) return in[u][1][e] - exponential(x) * total[r].sum;
        break;
      case RowOperation::loss:
      case RowOperation::loss_and_gradient: break;
    }
    int const number = results == 1 ? static_cast<int>(run) * width + e : static_cast<int>(run);
    auto const scale = static_cast<Real>(params.scalar[0] * params.scalar[1]);
    return label < 0 ? not_a_number() : (probability(x, r) - (number == label ? Real(1) : Real(0))) * scale;
  }
  COSMATI_DEVICE Real probability(Real x, int r) const {
    return (keeps_exponentials() ? x : exponential(x - total[r].max)) * factor[r];
  }

  COSMATI_DEVICE static Real not_a_number() { return lowest<Real>() - lowest<Real>(); }

  COSMATI_DEVICE void write(unsigned first, int const (&label)[results]) const {
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      unsigned const run = first + static_cast<unsigned>(u * members);
      if (counts[u] == 0) continue;
      Real out[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) out[e] = result(u, e, run, label[results == 1 ? 0 : e]);
      using Access = typename AccessAt<0, typename Traits::Outputs>::type;
      PrimitiveTensor const& tensor = params.tensor[primitive_inputs];
      Access::store(tensor, ContiguousRange{offset(tensor, run), policy.whole ? width : counts[u]}, out);
    }
  }

  // Loads the labels of this thread's rows; -1: outside the classes.
  COSMATI_DEVICE void load_labels(int (&label)[results]) const {
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
  COSMATI_DEVICE void load_scores_of_labels(int const (&label)[results], Real (&score)[results]) const {
    PrimitiveTensor const& scores = params.tensor[0];
    using Scores = typename AccessAt<0, typename Traits::Inputs>::type;
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) {
      score[r] = not_a_number();
      if (!is_loss() || !exists || !leads() || r >= across_count || label[r] < 0) continue;
      Real of_label[1];
      // Along a row the stride is that of a complete run; an element's stride is 1/width of it.
      Index const step = results == 1 ? scores.stride[policy.kept] / width : scores.stride[policy.kept];
      Scores::load(params, scores,
                   ContiguousRange{kept.offset(scores.stride) + r * scores.run_stride + label[r] * step, 1},
                   of_label);
      score[r] = static_cast<Real>(params.scalar[0]) * of_label[0];
    }
  }

  COSMATI_DEVICE void write_losses([[maybe_unused]] Real const (&score)[results]) const {
    if constexpr (Traits::Outputs::size > 1) {
      if (!is_loss() || !exists || !leads()) return;
      PrimitiveTensor const& losses = params.tensor[primitive_inputs + 1];
      using Losses = typename AccessAt<1, typename Traits::Outputs>::type;
      Real out[results];
      COSMATI_UNROLL
      for (int r = 0; r < results; ++r) out[r] = total[r].max - score[r] + log_of_sum[r];
      Losses::store(losses, ContiguousRange{kept.offset(losses.stride), across_count}, out);
    }
  }

  COSMATI_DEVICE void run(RowShared<Traits>& shared) {
    auto const step = static_cast<unsigned>(members * loaded),
               begin = static_cast<unsigned>(team.member + block * team.along);
    int label[results];
    Real score[results];
    load_labels(label);
    if (cached > 0) {
      load(begin);
      load_scores_of_labels(label, score);
      add();
    } else {
      load_scores_of_labels(label, score);
      for (unsigned i = begin; i < params.terms; i += step) {
        load(i);
        add();
      }
    }
    this->join(shared);
    write_losses(score);
    if (operation != RowOperation::loss) {
      if (cached > 0) {
        write(begin, label);
      } else {
        for (unsigned i = begin; i < params.terms; i += step) {
          load(i);
          write(i, label);
        }
      }
    }
    if (policy.cluster > 1) arch::cluster_wait();
  }
};

template <class Traits, bool packed>
struct RowKernelOf {
  using Kernel = RowKernel<Traits>;
};
template <class Traits>
struct RowKernelOf<Traits, true> {
  using Kernel = PackedRowKernel<Traits>;
};

// The row is the only axis of terms. Grid: ceil(positions / across) blocks.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::packed ? 5 : 1)
row_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  Team const team(Traits::policy(params), Traits::threads);
  unsigned const position = static_cast<unsigned>(arch::block_x()) * static_cast<unsigned>(team.across) +
                            static_cast<unsigned>(team.column);
  typename RowKernelOf<Traits, Traits::packed>::Kernel kernel(params, team, 0, position);
  kernel.run(arch::shared_storage<RowShared<Traits>>());
}

}  // namespace cosmati
