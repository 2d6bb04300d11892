// Reductions over the threads that share a row.
#pragma once
#include "cosmati/arch/barrier.h"
#include "cosmati/arch/cluster.h"
#include "cosmati/core/cluster.h"
#include "cosmati/primitive/math.h"
#include "cosmati/primitive/reduce.h"

namespace cosmati {

// Inputs: x; y and dy for the gradients; x and labels for the losses. Outputs: y or dx; for the losses dx and
// the loss of each row, or their sum for each block. The loss of row n is log(sum over i of exp(s*x[n, i]) +
// exp(-rubbish)) - s*x[n, label[n]], and dx = s * (exp(...) / sum - (i == label)) * scale, with s =
// scalar[0], scale = scalar[1], rubbish = scalar[2]. A label outside [0, classes) makes the loss and dx of
// its row NaN.
enum class RowOperation : int {
  softmax,
  log_softmax,
  softmax_gradient,
  log_softmax_gradient,
  loss,
  loss_and_gradient
};

// A sum of exponentials relative to the largest exponent: exp(max) * sum.
template <class Real>
struct ExponentialSum {
  Real max, sum;

  COSMATI_DEVICE void join(Real other_max, Real other_sum) {
    Real const both = larger(other_max, max), base = base_of(both);
    sum = sum * exponential(max - base) + other_sum * exponential(other_max - base);
    max = both;
  }
  // If all exponents are minus infinity, so are their differences from 0.
  COSMATI_DEVICE static Real base_of(Real max) { return max == lowest<Real>() ? Real(0) : max; }
};

template <class Traits>
struct RowShared {
  arch::Barrier received;  // the totals of all blocks of the cluster
  typename Traits::Real of_block[max_cluster_blocks][2];
  typename Traits::Real value[results_of<Traits>][2][Traits::threads];
  typename Traits::Real loss[Traits::threads];  // of each row of the block
};

template <class Traits>
struct RowTotals {
  using Real = typename Traits::Real;
  using Sum = ExponentialSum<Real>;
  static constexpr int results = results_of<Traits>, cached = Traits::cached;

  PrimitiveParameters const& params;
  PrimitivePolicy const policy;
  RowOperation const operation;
  Team const team;
  int const block;           // rank in the row's cluster
  Sum total[results];        // or only .sum
  Real factor[results];      // for kept exponentials, or 1 / sum
  Real log_of_sum[results];  // if the operation requires it

  COSMATI_DEVICE RowTotals(PrimitiveParameters const& all, Team const& mine, int block_of_row)
      : params(all),
        policy(Traits::policy(all)),
        operation(static_cast<RowOperation>(policy.operation)),
        team(mine),
        block(block_of_row) {
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) total[r] = {lowest<Real>(), Real(0)};
  }

  COSMATI_DEVICE bool exponentials() const {
    return operation != RowOperation::softmax_gradient && operation != RowOperation::log_softmax_gradient;
  }
  COSMATI_DEVICE bool is_loss() const {
    return operation == RowOperation::loss || operation == RowOperation::loss_and_gradient;
  }
  // Exponentials replace the scores from which they are computed.
  COSMATI_DEVICE bool keeps_exponentials() const {
    return cached > 0 && !Traits::packed &&
           (operation == RowOperation::softmax || operation == RowOperation::loss_and_gradient);
  }
  COSMATI_DEVICE bool leads() const { return team.member == 0 && block == 0; }

  // Called first. The blocks of a cluster wait for each other only before they send their totals.
  COSMATI_DEVICE void start(RowShared<Traits>& shared) const {
    if (policy.cluster == 1) return;
    if (arch::thread() == 0) {
      arch::init(shared.received, 1);
      arch::arrive_expecting(shared.received, policy.cluster * static_cast<int>(sizeof shared.of_block[0]));
      arch::publish_barriers();
    }
    arch::cluster_arrive_relaxed();
  }

  // Makes the total known to all threads of the row.
  COSMATI_DEVICE void join(RowShared<Traits>& shared) {
    Real own[results];
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) own[r] = total[r].max;
    auto const rubbish = static_cast<Real>(params.scalar[2]);
    if (is_loss() && rubbish < -lowest<Real>() && leads()) {
      COSMATI_UNROLL
      for (int r = 0; r < results; ++r) total[r].join(-rubbish, Real(1));
    }
    if (policy.runs_of_terms)
      join_row(shared);
    else
      join_columns(shared);
    COSMATI_UNROLL
    for (int r = 0; r < results; ++r) {
      factor[r] = Real(1) / total[r].sum;
      if (keeps_exponentials()) factor[r] *= exponential(own[r] - Sum::base_of(total[r].max));
      log_of_sum[r] = operation == RowOperation::log_softmax || is_loss() ? logarithm(total[r].sum) : Real(0);
    }
  }

  // The members are contiguous: lanes of a warp, then warps of the block, then blocks of the cluster; a power
  // of two of each, so that every lane of every block gets the same bits.
  COSMATI_DEVICE void join_row(RowShared<Traits>& shared) {
    int const warps = team.along / 32;
    join_lanes(team.along < 32 ? team.along : 32);
    if (warps > 1) {
      int const warp = arch::thread() / 32, first = warp / warps * warps;
      if (arch::thread() % 32 == 0) {
        shared.value[0][0][warp] = total[0].max;
        shared.value[0][1][warp] = total[0].sum;
      }
      arch::block_barrier();
      int const other = first + arch::thread() % warps;
      total[0] = {shared.value[0][0][other], shared.value[0][1][other]};
      join_lanes(warps);
    }
    if (policy.cluster > 1) {
      // Each block sends its total to all blocks. A cluster barrier that releases shared memory would be a
      // fence of the whole device in every thread.
      arch::cluster_wait();
      int const lane = arch::thread();
      if (lane < 2 * policy.cluster)
        arch::send(shared.of_block[block][lane % 2], lane % 2 == 0 ? total[0].max : total[0].sum,
                   shared.received, lane / 2);
      arch::acquire(shared.received, 0);
      Real const(&other)[2] = shared.of_block[lane % policy.cluster];
      total[0] = {other[0], other[1]};
      join_lanes(policy.cluster);
    }
    // If dx is x, the score of the label has been read before this point.
    if (operation == RowOperation::loss_and_gradient) arch::warp_barrier();
  }

  // Joins the totals of adjacent lanes, `count` at a time.
  COSMATI_DEVICE void join_lanes(int count) {
    Real max = total[0].max, sum = total[0].sum;
    if (exponentials()) {
      COSMATI_UNROLL
      for (int lane = 16; lane > 0; lane /= 2)
        if (lane < count) max = larger(arch::exchange(max, lane), max);
      sum *= exponential(total[0].max - Sum::base_of(max));
    }
    COSMATI_UNROLL
    for (int lane = 16; lane > 0; lane /= 2)
      if (lane < count) sum += arch::exchange(sum, lane);
    total[0] = {max, sum};
  }

  COSMATI_DEVICE void join_columns(RowShared<Traits>& shared) {
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
    }
  }
};

}  // namespace cosmati
