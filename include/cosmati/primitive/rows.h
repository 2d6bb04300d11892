// Softmax, its logarithm, their gradients, and the losses of a classifier: all operations that need a sum
// over a row before writing it. Rows that fit are read once and kept in registers.
#pragma once
#include "cosmati/primitive/packed_rows.h"

namespace cosmati {

template <class Traits>
struct RowKernel : RowLosses<Traits> {
  using Base = RowLosses<Traits>;
  using Base::block, Base::total, Base::factor, Base::log_of_sum, Base::exponentials;
  using Base::cached, Base::results, Base::params, Base::policy, Base::operation, Base::team;
  using Base::is_loss, Base::keeps_exponentials, Base::kept, Base::exists, Base::across_count;
  using typename Base::Real, typename Base::Sum;
  static constexpr int width = Traits::width, unroll = Traits::unroll, inputs = Traits::inputs;
  // Runs loaded before the first use: the thread's entire share of a row, or a few runs of it.
  static constexpr int loaded = cached > 0 ? cached : unroll;

  int const members;  // threads of a row
  Real in[loaded][inputs][width];
  int counts[loaded];

  COSMATI_DEVICE RowKernel(PrimitiveParameters const& all, Team const& mine, int block_of_row,
                           unsigned position)
      : Base(all, mine, block_of_row, position), members(mine.along * policy.cluster) {}

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

  COSMATI_DEVICE Real result(int u, int e, unsigned run) const {
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
    return (probability(x, r) - (number == this->label[r] ? Real(1) : Real(0))) * this->gradient_scale(r);
  }
  COSMATI_DEVICE Real probability(Real x, int r) const {
    return (keeps_exponentials() ? x : exponential(x - total[r].max)) * factor[r];
  }

  COSMATI_DEVICE void write(unsigned first) const {
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      unsigned const run = first + static_cast<unsigned>(u * members);
      if (counts[u] == 0) continue;
      Real out[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) out[e] = result(u, e, run);
      using Access = typename AccessAt<0, typename Traits::Outputs>::type;
      PrimitiveTensor const& tensor = params.tensor[primitive_inputs];
      Access::store(tensor, ContiguousRange{offset(tensor, run), policy.whole ? width : counts[u]}, out);
    }
  }

  COSMATI_DEVICE void run(RowShared<Traits>& shared) {
    this->start(shared);
    auto const step = static_cast<unsigned>(members * loaded),
               begin = static_cast<unsigned>(team.member + block * team.along);
    this->load_labels();
    if (cached > 0) {
      load(begin);
      this->load_scores_of_labels();
      add();
    } else {
      this->load_scores_of_labels();
      for (unsigned i = begin; i < params.terms; i += step) {
        load(i);
        add();
      }
    }
    this->join(shared);
    this->write_losses(shared);
    if (operation != RowOperation::loss) {
      if (cached > 0) {
        write(begin);
      } else {
        for (unsigned i = begin; i < params.terms; i += step) {
          load(i);
          write(i);
        }
      }
    }
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

// The row is the only axis of terms. Packed rows have registers for 40 warps per multiprocessor, more than
// fit as blocks of one warp, which were measured with this bound. Grid: ceil(positions / across) blocks.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::packed ? 1280 / Traits::threads : 1)
row_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  Team const team(Traits::policy(params), Traits::threads);
  unsigned const position = static_cast<unsigned>(arch::block_x()) * static_cast<unsigned>(team.across) +
                            static_cast<unsigned>(team.column);
  typename RowKernelOf<Traits, Traits::packed>::Kernel kernel(params, team, 0, position);
  kernel.run(arch::shared_storage<RowShared<Traits>>());
}

}  // namespace cosmati
