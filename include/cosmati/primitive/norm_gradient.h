// The gradients of layer and RMS normalization in one pass: x and dy are read once, dx is written, and the
// gradients of weight and bias are summed in registers over all rows of a block.
#pragma once
#include "cosmati/primitive/norm_access.h"

namespace cosmati {

// A team of threads processes `unroll` rows at a time; a thread has the same columns in all of them. All runs
// are complete and kept in registers. Inputs as in NormOperation; outputs: dx, and the block's sums of dy * u
// and of dy, if their bits are set, `split_stride` elements after those of the previous block.
template <class Traits>
struct NormGradientKernel : NormAccess<Traits, 2 * Traits::unroll> {
  static constexpr int width = Traits::width, cached = Traits::cached, rows = Traits::unroll;
  using Access = NormAccess<Traits, 2 * rows>;
  using Access::params, Access::policy, Access::team, Access::has, Access::centered;
  using Access::place_of, Access::place_near, Access::write_at;
  using typename Access::Real, typename Access::Shared;
  // The second input, or x in instances without one.
  static constexpr int second = Traits::Inputs::size > 1 ? 1 : 0;
  // The weight is the last of the inputs, if there is one; all inputs of the emulator are of one type.
  static constexpr int last = Traits::Inputs::size > 5 ? 4 : Traits::Inputs::size - 1;
  // Independent sums of a thread.
  static constexpr int chains = width < 2 ? width : 2;
  using X = typename Access::template Input<0>;
  using Gradient = typename Access::template Input<second>;
  using Weight = typename Access::template Input<last>;

  struct SharedStorage {
    Shared rows;                                     // sums over the threads of a row
    Real columns[cached * width * Traits::threads];  // sums over the rows: (element of a thread, thread)
  };

  typename Access::template Raw<last> weight[cached];
  Real dweight[cached][width] = {}, dbias[cached][width] = {};
  typename Access::template Raw<0> x[rows][cached];
  typename Access::template Raw<second> dy[rows][cached];
  Real mean[rows], inverse[rows];

  COSMATI_DEVICE NormGradientKernel(PrimitiveParameters const& all, Team const& mine, Shared& memory)
      : Access(all, mine, memory) {}

  COSMATI_DEVICE unsigned run_of(int u) const { return static_cast<unsigned>(team.member + u * team.along); }
  COSMATI_DEVICE bool has_run(int u) const { return run_of(u) < params.terms; }
  COSMATI_DEVICE unsigned row_of(unsigned first, int r) const {
    return first + static_cast<unsigned>(team.column + r * team.across);
  }

  COSMATI_DEVICE void read_weight() {
    if (!has(NormOperation::weight)) return;
    PrimitiveTensor const& tensor = params.tensor[centered() ? 4 : 3];
    COSMATI_UNROLL
    for (int u = 0; u < cached; ++u)
      Weight::template fetch<width>(
          params, tensor,
          ContiguousRange{this->offset(tensor, this->row_at(0), place_near(run_of(u))), width}, weight[u]);
  }

  // Rows that do not exist are read as the first one and not used.
  COSMATI_DEVICE void load(unsigned first) {
    COSMATI_UNROLL
    for (int r = 0; r < rows; ++r) {
      unsigned const number = row_of(first, r);
      Place const row = this->row_at(number < params.positions ? number : 0);
      this->read_statistics(row, mean[r], inverse[r]);
      COSMATI_UNROLL
      for (int u = 0; u < cached; ++u) {
        Place const place = place_near(run_of(u));
        this->template fetch<0>(row, place, width, x[r][u]);
        this->template fetch<second>(row, place, width, dy[r][u]);
      }
    }
  }

  // u = (x - mean) * inverse, and g = dy * weight.
  struct Terms {
    Real u[width], dy[width], weight[width];

    COSMATI_DEVICE Real g(int e) const { return dy[e] * weight[e]; }
  };
  COSMATI_DEVICE Terms terms_of(int r, int u) const {
    Terms terms;
    X::unpack(params, x[r][u], terms.u);
    Gradient::unpack(params, dy[r][u], terms.dy);
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) {
      terms.u[e] = (terms.u[e] - mean[r]) * inverse[r];
      terms.weight[e] = Real(1);
    }
    if (has(NormOperation::weight)) Weight::unpack(params, weight[u], terms.weight);
    return terms;
  }

  // Adds g and g * u of each row to sum.
  COSMATI_DEVICE void add(unsigned first, Real (&sum)[2 * rows]) {
    COSMATI_UNROLL
    for (int r = 0; r < rows; ++r) {
      Real sums[chains] = {}, with_u[chains] = {};
      if (row_of(first, r) < params.positions) {
        COSMATI_UNROLL
        for (int u = 0; u < cached; ++u) {
          if (!has_run(u)) continue;
          Terms const terms = terms_of(r, u);
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e) {
            Real const g = terms.g(e);
            if (centered()) sums[e % chains] += g;
            with_u[e % chains] += g * terms.u[e];
            if (has(NormOperation::sums_weight)) dweight[u][e] += terms.dy[e] * terms.u[e];
            if (has(NormOperation::sums_bias)) dbias[u][e] += terms.dy[e];
          }
        }
      }
      sum[2 * r] = Access::sum_of(sums);
      sum[2 * r + 1] = Access::sum_of(with_u);
    }
  }

  COSMATI_DEVICE void write(unsigned first, Real const (&means)[2 * rows]) const {
    COSMATI_UNROLL
    for (int r = 0; r < rows; ++r) {
      if (row_of(first, r) >= params.positions) continue;
      Place const row = this->row_at(row_of(first, r));
      COSMATI_UNROLL
      for (int u = 0; u < cached; ++u) {
        if (!has_run(u)) continue;
        Terms const terms = terms_of(r, u);
        Real out[width];
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e)
          out[e] = inverse[r] * (terms.g(e) - means[2 * r] - terms.u[e] * means[2 * r + 1]);
        write_at(0, row, place_of(run_of(u)), width, out);
      }
    }
  }

  // Adds the sums of the block's teams, in their order; the last one writes them.
  COSMATI_DEVICE void write_sums(int output, Real (&sums)[cached][width], Real* columns) const {
    for (int column = 0; column < team.across; ++column) {
      if (team.column == column) {
        COSMATI_UNROLL
        for (int u = 0; u < cached; ++u) {
          COSMATI_UNROLL
          for (int e = 0; e < width; ++e) {
            Real& held = columns[(u * width + e) * team.along + team.member];
            if (column > 0) sums[u][e] += held;
            held = sums[u][e];
          }
        }
      }
      arch::block_barrier();
    }
    if (team.column + 1 != team.across) return;
    COSMATI_UNROLL
    for (int u = 0; u < cached; ++u)
      if (has_run(u))
        write_at(output, this->row_at(0), place_of(run_of(u)), width, sums[u],
                 arch::block_x() * params.split_stride);
  }

  COSMATI_DEVICE void run(Real* columns) {
    auto const of_block = static_cast<unsigned>(team.across * rows),
               step = static_cast<unsigned>(arch::grid_x()) * of_block;
    auto const share = static_cast<Real>(params.scalar[0]);
    read_weight();
    for (unsigned first = static_cast<unsigned>(arch::block_x()) * of_block; first < params.positions;
         first += step) {
      load(first);
      Real sum[2 * rows];
      add(first, sum);
      this->join(sum);
      COSMATI_UNROLL
      for (int i = 0; i < 2 * rows; ++i) sum[i] *= share;
      write(first, sum);
    }
    int output = 1;
    if (has(NormOperation::sums_weight)) write_sums(output++, dweight, columns);
    if (has(NormOperation::sums_bias)) write_sums(output, dbias, columns);
  }
};

// The terms are the elements of a row. Dynamic shared memory: SharedStorage. Grid: any number of blocks,
// which divide the rows among themselves.
template <class Traits>
COSMATI_KERNEL(Traits::threads, norm_gradient_blocks(Traits::threads, Traits::width* Traits::cached))
norm_gradient_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  using Kernel = NormGradientKernel<Traits>;
  Team const team(Traits::policy(params), Traits::threads);
  auto& shared = arch::shared_storage<typename Kernel::SharedStorage>();
  Kernel kernel(params, team, shared.rows);
  kernel.run(shared.columns);
}

}  // namespace cosmati
