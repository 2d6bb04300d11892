// Softmax, its logarithm, their gradients, and the losses of a classifier: everything that needs one sum over
// a row before it can write the row. A row that fits is read once and kept in registers.
#pragma once
#include "cosmati/primitive/math.h"
#include "cosmati/primitive/reduce.h"

namespace cosmati {

// Inputs: x; or y, dy of the gradients; or x and labels of the losses. Outputs: y or dx; the losses: dx, then
// the loss of each row. loss of row n: log(sum over i of exp(s*x[n, i]) + exp(-rubbish)) - s*x[n, label[n]],
// dx = s * (exp(...) / sum - (i == label)) * scale, with s = scalar[0], scale = scalar[1], rubbish =
// scalar[2]. A label outside [0, classes) makes the loss and dx of its row NaN.
enum class RowOperation : int {
  softmax,
  log_softmax,
  softmax_gradient,
  log_softmax_gradient,
  loss,
  loss_and_gradient
};

// Sums of exponentials relative to the largest exponent: exp(max) * sum.
template <class Real>
struct ExponentialSum {
  Real max, sum;

  COSMATI_DEVICE void join(Real other_max, Real other_sum) {
    Real const both = other_max > max ? other_max : max;
    sum = scaled(max, sum, both) + scaled(other_max, other_sum, both);
    max = both;
  }
  // Two infinities of one sign would make NaN of what is exactly 1.
  COSMATI_DEVICE static Real scaled(Real from, Real value, Real to) {
    return from == to ? value : value * exponential(from - to);
  }
};

template <class Traits>
struct RowShared {
  typename Traits::Real value[results_of<Traits>][2][Traits::threads];
};

template <class Traits>
struct RowKernel {
  using Real = typename Traits::Real;
  static constexpr int width = Traits::width, results = results_of<Traits>, unroll = Traits::unroll;
  static constexpr int cached = Traits::cached, inputs = Traits::inputs;
  // What is loaded before anything waits: the whole share of a row, or a few runs of it.
  static constexpr int loaded = cached > 0 ? cached : unroll;

  PrimitiveParameters const& params;
  PrimitivePolicy const policy;
  RowOperation const operation;
  Team const team;
  Place const kept;
  bool const exists;
  int const across_count;
  Real in[loaded][inputs][width];
  int counts[loaded];
  ExponentialSum<Real> total[results];  // or .sum alone
  Real inverse[results];                // of the sum

  COSMATI_DEVICE RowKernel(PrimitiveParameters const& all, Team const& mine, unsigned position)
      : params(all),
        policy(Traits::policy(all)),
        operation(static_cast<RowOperation>(policy.operation)),
        team(mine),
        kept(all.axis, policy.kept, position < all.positions ? position : 0),
        exists(position < all.positions),
        across_count(results == 1 ? 1 : run_count<width>(all.run_extent, kept.at[0])) {}

  COSMATI_DEVICE bool exponentials() const {
    return operation != RowOperation::softmax_gradient && operation != RowOperation::log_softmax_gradient;
  }
  COSMATI_DEVICE bool is_loss() const {
    return operation == RowOperation::loss || operation == RowOperation::loss_and_gradient;
  }

  COSMATI_DEVICE Index offset(PrimitiveTensor const& tensor, unsigned run) const {
    return kept.offset(tensor.stride) + run * tensor.stride[policy.kept];
  }

  COSMATI_DEVICE void load(unsigned first) {
    auto const members = static_cast<unsigned>(team.along);
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      unsigned const run = first + static_cast<unsigned>(u) * members;
      counts[u] = 0;
      if (!exists || run >= params.terms) continue;
      counts[u] = policy.runs_of_terms ? run_count<width>(params.run_extent, run) : across_count;
      load_inputs<Traits>(
          params, [&](PrimitiveTensor const& tensor) { return offset(tensor, run); }, counts[u], in[u]);
    }
  }

  COSMATI_DEVICE Real score(int u, int e) const {
    return is_loss() ? static_cast<Real>(params.scalar[0]) * in[u][0][e] : in[u][0][e];
  }

  COSMATI_DEVICE void add() {
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) {
      Real max = lowest<Real>(), sum = 0;
      COSMATI_UNROLL
      for (int u = 0; u < loaded; ++u) {
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e)
          if ((results == 1 || e == r) && e < counts[u]) {
            if (exponentials())
              max = score(u, e) > max ? score(u, e) : max;
            else
              sum += gradient_term(u, e);
          }
      }
      if (exponentials()) {
        COSMATI_UNROLL
        for (int u = 0; u < loaded; ++u) {
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e)
            if ((results == 1 || e == r) && e < counts[u]) {
              Real const x = score(u, e);
              // Minus infinity is nothing, unless all are.
              sum += x == lowest<Real>() ? Real(0) : exponential(x - max);
            }
        }
        total[r].join(max, sum);
      } else {
        total[r].sum += sum;
      }
    }
  }

  COSMATI_DEVICE Real gradient_term(int u, int e) const {
    if constexpr (inputs > 1)
      return operation == RowOperation::softmax_gradient ? in[u][0][e] * in[u][1][e] : in[u][1][e];
    else
      return in[u][0][e];
  }

  // All members of a team come to know the total.
  COSMATI_DEVICE void join(RowShared<Traits>& shared) {
    int const slot = team.slot(team.member);
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) {
      shared.value[r][0][slot] = total[r].max;
      shared.value[r][1][slot] = total[r].sum;
    }
    arch::block_barrier();
    for (int half = team.along / 2; half > 0; half /= 2) {
      if (team.member < half) {
        int const other = team.slot(team.member + half);
        COSMATI_UNROLL
        for (int r = 0; r < results; ++r) {
          if (exponentials())
            total[r].join(shared.value[r][0][other], shared.value[r][1][other]);
          else
            total[r].sum += shared.value[r][1][other];
          shared.value[r][0][slot] = total[r].max;
          shared.value[r][1][slot] = total[r].sum;
        }
      }
      arch::block_barrier();
    }
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) {
      total[r].max = shared.value[r][0][team.slot(0)];
      total[r].sum = shared.value[r][1][team.slot(0)];
      inverse[r] = Real(1) / total[r].sum;
    }
  }

  COSMATI_DEVICE Real result(int u, int e, unsigned run, int label) const {
    ExponentialSum<Real> const& sum = total[results == 1 ? 0 : e];
    switch (operation) {
      case RowOperation::softmax: return exponential(in[u][0][e] - sum.max) * inverse[results == 1 ? 0 : e];
      case RowOperation::log_softmax: return in[u][0][e] - sum.max - logarithm(sum.sum);
      case RowOperation::softmax_gradient:
        if constexpr (inputs > 1) return in[u][0][e] * (in[u][1][e] - sum.sum);
        break;
      case RowOperation::log_softmax_gradient:
        if constexpr (inputs > 1) return in[u][1][e] - exponential(in[u][0][e]) * sum.sum;
        break;
      case RowOperation::loss:
      case RowOperation::loss_and_gradient: break;
    }
    Index const number = results == 1 ? static_cast<Index>(run) * width + e : static_cast<Index>(run);
    Real const probability = exponential(score(u, e) - sum.max) * inverse[results == 1 ? 0 : e];
    auto const scale = static_cast<Real>(params.scalar[0] * params.scalar[1]);
    return label < 0 ? not_a_number() : (probability - (number == label ? Real(1) : Real(0))) * scale;
  }

  COSMATI_DEVICE static Real not_a_number() { return lowest<Real>() - lowest<Real>(); }

  COSMATI_DEVICE void write(unsigned first, int const (&label)[results]) const {
    auto const members = static_cast<unsigned>(team.along);
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      unsigned const run = first + static_cast<unsigned>(u) * members;
      if (counts[u] == 0) continue;
      Real out[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) out[e] = result(u, e, run, label[results == 1 ? 0 : e]);
      using Access = typename AccessAt<0, typename Traits::Outputs>::type;
      PrimitiveTensor const& tensor = params.tensor[primitive_inputs];
      Access::store(tensor, Run{offset(tensor, run), counts[u]}, out);
    }
  }

  // The labels of this thread's rows; -1: outside the classes.
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

  COSMATI_DEVICE void write_losses([[maybe_unused]] int const (&label)[results]) const {
    if constexpr (Traits::Outputs::size > 1) write_losses_of(label);
  }
  COSMATI_DEVICE void write_losses_of(int const (&label)[results]) const {
    if (!is_loss() || !exists || team.member != 0) return;
    PrimitiveTensor const& scores = params.tensor[0];
    PrimitiveTensor const& losses = params.tensor[primitive_inputs + 1];
    using Scores = typename AccessAt<0, typename Traits::Inputs>::type;
    using Losses = typename AccessAt<1, typename Traits::Outputs>::type;
    Real out[results];
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) {
      if (r >= across_count) continue;
      Real of_label[1] = {not_a_number()};
      // Along a row the stride is that of a whole run; one element of it is a width-th.
      Index const step = results == 1 ? scores.stride[policy.kept] / width : scores.stride[policy.kept];
      if (label[r] >= 0)
        Scores::load(params, scores,
                     Run{kept.offset(scores.stride) + r * scores.run_stride + label[r] * step, 1}, of_label);
      out[r] = total[r].max - static_cast<Real>(params.scalar[0]) * of_label[0] + logarithm(total[r].sum);
    }
    Losses::store(losses, Run{kept.offset(losses.stride), across_count}, out);
  }

  COSMATI_DEVICE void run(RowShared<Traits>& shared) {
    auto const rubbish = static_cast<Real>(params.scalar[2]);
    bool const adds_rubbish = is_loss() && rubbish < -lowest<Real>() && team.member == 0;
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r)
      total[r] = adds_rubbish ? ExponentialSum<Real>{-rubbish, Real(1)}
                              : ExponentialSum<Real>{lowest<Real>(), Real(0)};
    auto const step = static_cast<unsigned>(team.along * loaded), begin = static_cast<unsigned>(team.member);
    if (cached > 0) {
      load(begin);
      add();
    } else {
      for (unsigned i = begin; i < params.terms; i += step) {
        load(i);
        add();
      }
    }
    join(shared);
    int label[results];
    load_labels(label);
    write_losses(label);
    if (operation == RowOperation::loss) return;
    if (is_loss()) arch::block_barrier();  // dx may be x, of which the score of the label has been read
    if (cached > 0) {
      write(begin, label);
    } else {
      for (unsigned i = begin; i < params.terms; i += step) {
        load(i);
        write(i, label);
      }
    }
  }
};

// Grid: ceil(positions / across) blocks; one axis of terms: the row.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1)
row_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  Team const team(Traits::policy(params), Traits::threads);
  unsigned const position = static_cast<unsigned>(arch::block_x()) * static_cast<unsigned>(team.across) +
                            static_cast<unsigned>(team.column);
  RowKernel<Traits> kernel(params, team, position);
  kernel.run(arch::shared_storage<RowShared<Traits>>());
}

}  // namespace cosmati
