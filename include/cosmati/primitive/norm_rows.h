// Layer and RMS normalization of rows, and their gradients. A row that fits in the registers of its threads
// is read once; sums are over a thread's runs, then lanes, then warps, always in the same order.
#pragma once
#include "cosmati/primitive/norm_access.h"

namespace cosmati {

template <class Traits>
struct NormKernel : NormAccess<Traits> {
  using Access = NormAccess<Traits>;
  using Access::params, Access::policy, Access::team;
  using Access::place_of, Access::place_near, Access::join, Access::joined, Access::sum_of;
  using Access::read_at, Access::write_at, Access::has, Access::centered;
  using typename Access::Real, typename Access::Shared;
  template <int i>
  using Input = typename Access::template Input<i>;
  template <int i>
  using Raw = typename Access::template Raw<i>;
  static constexpr int width = Traits::width, cached = Traits::cached;
  static constexpr int loaded = cached > 0 ? cached : Traits::unroll;
  // 16-bit elements that a thread keeps: those of x and, for gradients, of dy. With 32 of them, three blocks
  // fit on a multiprocessor.
  static constexpr int kept_elements =
      width * cached * ((Traits::operation & NormOperation::gradient) != 0 ? 2 : 1);
  static constexpr int blocks =
      sizeof(Raw<0>) == 2 * width && kept_elements <= 32 && sizeof(Real) == 4 ? 3 : 1;

  Place const kept;
  bool const exists;
  // x and, for gradients, dy * weight.
  Real value[2][loaded][width];
  int counts[loaded];
  // The mean is mean + correction: the rounding error of a large mean exceeds the deviations.
  Real mean = 0, correction = 0, inverse = 0;

  COSMATI_DEVICE NormKernel(PrimitiveParameters const& all, Team const& mine, Shared& memory,
                            unsigned position)
      : Access(all, mine, memory),
        kept(this->row_at(position < all.positions ? position : 0)),
        exists(position < all.positions) {}

  COSMATI_DEVICE unsigned run_of(unsigned first, int u) const {
    return first + static_cast<unsigned>(u * team.along);
  }
  // Whether element e of run u exists; the run has at least one element.
  COSMATI_DEVICE bool has_element(int u, int e) const { return policy.whole || e < counts[u]; }
  COSMATI_DEVICE int count_of(int u) const { return policy.whole ? width : counts[u]; }

  COSMATI_DEVICE void load(unsigned first) {
    Raw<0> x[loaded];
    constexpr int second = Traits::Inputs::size > 1 ? 1 : 0;
    Raw<second> dy[loaded];
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      unsigned const run = run_of(first, u);
      Place const place = place_near(run);
      counts[u] = run >= params.terms ? 0
                  : policy.whole      ? width
                                      : run_count<width>(params.run_extent, place.at[0]);
      this->template fetch<0>(kept, place, count_of(u), x[u]);
      if (has(NormOperation::gradient)) this->template fetch<second>(kept, place, count_of(u), dy[u]);
    }
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      Input<0>::unpack(params, x[u], value[0][u]);
      if (!has(NormOperation::gradient)) continue;
      Input<second>::unpack(params, dy[u], value[1][u]);
      if (!has(NormOperation::weight)) continue;
      Real weight[width];
      read_at(centered() ? 4 : 3, kept, place_near(run_of(first, u)), count_of(u), weight);
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) value[1][u][e] *= weight[e];
    }
  }

  COSMATI_DEVICE Real sum_of_elements() const {
    Real sums[width] = {};
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      if (counts[u] == 0) continue;
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) sums[e] += has_element(u, e) ? value[0][u][e] : Real(0);
    }
    return sum_of(sums);
  }
  // Sums the squares of the differences from `center`.
  COSMATI_DEVICE Real sum_of_squares(Real center) const {
    Real sums[width] = {};
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      if (counts[u] == 0) continue;
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        Real const difference = has_element(u, e) ? value[0][u][e] - center : Real(0);
        sums[e] += difference * difference;
      }
    }
    return sum_of(sums);
  }
  // Replaces the elements by their differences from the mean; sums these and their squares.
  COSMATI_DEVICE void add_differences(Real (&sum)[2]) {
    Real sums[width] = {}, squares[width] = {};
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      if (counts[u] == 0) continue;
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        Real& difference = value[0][u][e];
        difference = has_element(u, e) ? difference - mean : Real(0);
        sums[e] += difference;
        squares[e] += difference * difference;
      }
    }
    sum[0] = sum_of(sums);
    sum[1] = sum_of(squares);
  }

  // Computes mean and inverse of a row that is not kept: merges the moments of each thread's share by their
  // means.
  COSMATI_DEVICE void find_statistics(unsigned begin, unsigned step) {
    Real const share = static_cast<Real>(params.scalar[0]);
    Real squares = 0;
    if (cached > 0) {
      load(begin);
      if (centered()) {
        mean = joined(sum_of_elements()) * share;
        Real sum[2] = {};
        add_differences(sum);
        join(sum);
        // An infinite mean has no correction.
        correction = sum[0] - sum[0] == Real(0) ? sum[0] * share : Real(0);
        squares = sum[1] - sum[0] * correction;
        if (squares < Real(0)) squares = Real(0);
      } else {
        squares = joined(sum_of_squares(Real(0)));
      }
    } else {
      Partial<Real, 3> partial;
      partial.clear(static_cast<int>(Combine::moments));
      for (unsigned i = begin; i < params.terms; i += step) {
        load(i);
        if (!centered()) {
          squares += sum_of_squares(Real(0));
          continue;
        }
        Real number = 0;
        COSMATI_UNROLL
        for (int u = 0; u < loaded; ++u) number += static_cast<Real>(counts[u]);
        if (number == Real(0)) continue;
        Real const own = sum_of_elements() / number;
        partial.join_moments(number, own, sum_of_squares(own));
      }
      if (centered()) {
        mean = joined(partial.value[0] > Real(0) ? partial.value[0] * partial.value[1] : Real(0)) * share;
        Real const difference = partial.value[0] > Real(0) ? partial.value[1] - mean : Real(0);
        squares = partial.value[2] + partial.value[0] * difference * difference;
      }
      squares = joined(squares);
    }
    inverse = inverse_root(squares * share + static_cast<Real>(params.scalar[1]));
  }
#if defined(__CUDACC__)
  COSMATI_DEVICE static Real inverse_root(Real x) { return Real(1) / sqrt(x); }
#else
  COSMATI_DEVICE static Real inverse_root(Real x) { return Real(1) / __builtin_sqrt(x); }
#endif

  COSMATI_DEVICE void write_statistics() const {
    if (!has(NormOperation::saves) || !exists || team.member != 0) return;
    Real one[width];
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) one[e] = mean + correction;
    if (centered()) write_at(1, kept, place_of(0), 1, one);
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) one[e] = inverse;
    write_at(centered() ? 2 : 1, kept, place_of(0), 1, one);
  }

  // Weight and bias of four runs are in flight together.
  COSMATI_DEVICE void write(unsigned first) const {
    COSMATI_UNROLL
    for (int u = 0; u < loaded; u += 4) write_some<(loaded < 4 ? loaded : 4)>(first, u);
  }
  template <int some>
  COSMATI_DEVICE void write_some(unsigned first, int from) const {
    constexpr int inputs = Traits::Inputs::size, one = inputs > 1 ? 1 : 0, two = inputs > 2 ? 2 : 0;
    Raw<one> parameter_one[some];
    Raw<two> parameter_two[some];
    bool const weight = has(NormOperation::weight), bias = has(NormOperation::bias);
    COSMATI_UNROLL
    for (int i = 0; i < some && from + i < loaded; ++i) {
      int const count = count_of(from + i);
      Place const place = place_near(run_of(first, from + i));
      if (one == 1 && (weight || bias)) this->template fetch<one>(kept, place, count, parameter_one[i]);
      if (two == 2 && weight && bias) this->template fetch<two>(kept, place, count, parameter_two[i]);
    }
    // The mean has been subtracted from elements that are kept.
    Real const shift = correction * inverse, center = cached > 0 ? Real(0) : mean;
    COSMATI_UNROLL
    for (int i = 0; i < some && from + i < loaded; ++i) {
      int const u = from + i;
      if (!exists || counts[u] == 0) continue;
      Real out[width], parameter[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) out[e] = (value[0][u][e] - center) * inverse - shift;
      if (one == 1 && (weight || bias)) {
        Input<one>::unpack(params, parameter_one[i], parameter);
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) out[e] = weight ? out[e] * parameter[e] : out[e] + parameter[e];
      }
      if (two == 2 && weight && bias) {
        Input<two>::unpack(params, parameter_two[i], parameter);
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) out[e] += parameter[e];
      }
      write_at(0, kept, place_of(run_of(first, u)), count_of(u), out);
    }
  }

  COSMATI_DEVICE Real normalized(int u, int e) const { return (value[0][u][e] - mean) * inverse; }

  // sums of g and of g * u
  COSMATI_DEVICE void add_gradients(Real (&sum)[2]) const {
    Real sums[width] = {}, with_u[width] = {};
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      if (counts[u] == 0) continue;
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        if (!has_element(u, e)) continue;
        if (centered()) sums[e] += value[1][u][e];
        with_u[e] += value[1][u][e] * normalized(u, e);
      }
    }
    sum[0] += sum_of(sums);
    sum[1] += sum_of(with_u);
  }

  COSMATI_DEVICE void write_gradient(unsigned first, Real const (&means)[2]) const {
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      if (!exists || counts[u] == 0) continue;
      Real out[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e)
        out[e] = inverse * (value[1][u][e] - means[0] - normalized(u, e) * means[1]);
      write_at(0, kept, place_of(run_of(first, u)), count_of(u), out);
    }
  }

  COSMATI_DEVICE void run() {
    auto const step = static_cast<unsigned>(team.along * loaded), begin = static_cast<unsigned>(team.member);
    if (!has(NormOperation::gradient)) {
      find_statistics(begin, step);
      write_statistics();
      if (cached > 0) {
        write(begin);
      } else {
        for (unsigned i = begin; i < params.terms; i += step) {
          load(i);
          write(i);
        }
      }
      return;
    }
    this->read_statistics(kept, mean, inverse);
    Real sum[2] = {};
    for (unsigned i = begin; i < (cached > 0 ? begin + 1 : params.terms); i += step) {
      load(i);
      add_gradients(sum);
    }
    join(sum);
    sum[0] *= static_cast<Real>(params.scalar[0]);
    sum[1] *= static_cast<Real>(params.scalar[0]);
    if (cached > 0) {
      write_gradient(begin, sum);
    } else {
      for (unsigned i = begin; i < params.terms; i += step) {
        load(i);
        write_gradient(i, sum);
      }
    }
  }
};

// The terms are the row. Grid: ceil(positions / across) blocks.
template <class Traits>
COSMATI_KERNEL(Traits::threads, NormKernel<Traits>::blocks)
norm_row_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  Team const team(Traits::policy(params), Traits::threads);
  unsigned const position = static_cast<unsigned>(arch::block_x()) * static_cast<unsigned>(team.across) +
                            static_cast<unsigned>(team.column);
  NormKernel<Traits> kernel(params, team, arch::shared_storage<NormShared<Traits>>(), position);
  kernel.run();
}

}  // namespace cosmati
