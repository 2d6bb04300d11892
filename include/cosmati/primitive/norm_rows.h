// Layer and RMS normalization of rows, and their gradients. A row that fits in the registers of its threads
// is read once; sums are over a thread's runs, then lanes, then warps, always in the same order.
#pragma once
#include "cosmati/primitive/norm_operation.h"
#include "cosmati/primitive/reduce.h"

namespace cosmati {

template <class Traits>
struct NormShared {
  typename Traits::Real value[2][Traits::threads / 32];
};

template <class Traits>
struct NormKernel {
  using Real = typename Traits::Real;
  static constexpr int width = Traits::width, cached = Traits::cached;
  static constexpr int loaded = cached > 0 ? cached : Traits::unroll;

  PrimitiveParameters const& params;
  PrimitivePolicy const policy;
  Team const team;
  NormShared<Traits>& shared;
  Place const kept;
  bool const exists;
  // x, and dy * weight of gradients; elements that do not exist are 0.
  Real value[2][loaded][width];
  int counts[loaded];
  // The mean is mean + correction: the rounding error of a large mean exceeds the deviations.
  Real mean = 0, correction = 0, inverse = 0;

  COSMATI_DEVICE NormKernel(PrimitiveParameters const& all, Team const& mine, NormShared<Traits>& memory,
                            unsigned position)
      : params(all),
        policy(Traits::policy(all)),
        team(mine),
        shared(memory),
        kept(all.axis, policy.kept, position < all.positions ? position : 0),
        exists(position < all.positions) {}

  COSMATI_DEVICE bool has(int bit) const { return (policy.operation & bit) != 0; }
  COSMATI_DEVICE bool centered() const { return !has(NormOperation::rms); }
  COSMATI_DEVICE unsigned run_of(unsigned first, int u) const {
    return first + static_cast<unsigned>(u * team.along);
  }

  template <int i>
  COSMATI_DEVICE void read(Place const& place, int count, Real (&to)[width]) const {
    using Access = typename AccessAt<i, typename Traits::Inputs>::type;
    PrimitiveTensor const& tensor = params.tensor[i];
    Access::load(params, tensor, ContiguousRange{offset(tensor, place), count}, to);
  }
  // Loads the input whose number depends on the operation.
  template <int i = 0>
  COSMATI_DEVICE void read_at(int number, Place const& place, int count, Real (&to)[width]) const {
    if constexpr (i < Traits::Inputs::size && i < 5) {
      if (number == i)
        read<i>(place, count, to);
      else
        read_at<i + 1>(number, place, count, to);
    }
  }
  template <int i = 0>
  COSMATI_DEVICE void write_at(int number, Place const& place, int count, Real const (&from)[width]) const {
    if constexpr (i < Traits::Outputs::size && i < 3) {
      if (number != i) return write_at<i + 1>(number, place, count, from);
      using Access = typename AccessAt<i, typename Traits::Outputs>::type;
      PrimitiveTensor const& tensor = params.tensor[primitive_inputs + i];
      Access::store(tensor, ContiguousRange{offset(tensor, place), count}, from);
    }
  }
  COSMATI_DEVICE Index offset(PrimitiveTensor const& tensor, Place const& place) const {
    return kept.offset(tensor.stride) + place.offset(tensor.stride + policy.kept);
  }
  COSMATI_DEVICE Place place_of(unsigned run) const {
    return Place(params.axis + policy.kept, policy.terms, run);
  }
  COSMATI_DEVICE Place start() const { return place_of(0); }

  COSMATI_DEVICE void load(unsigned first) {
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      unsigned const run = run_of(first, u);
      counts[u] = 0;
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) value[0][u][e] = value[1][u][e] = Real(0);
      if (!exists || run >= params.terms) continue;
      Place const place = place_of(run);
      counts[u] = policy.whole ? width : run_count<width>(params.run_extent, place.at[0]);
      read<0>(place, counts[u], value[0][u]);
      if constexpr (Traits::Inputs::size > 1) {
        if (has(NormOperation::gradient)) read<1>(place, counts[u], value[1][u]);
      }
    }
    if (!has(NormOperation::gradient) || !has(NormOperation::weight)) return;
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      if (counts[u] == 0) continue;
      Real weight[width];
      read_at(centered() ? 4 : 3, place_of(run_of(first, u)), counts[u], weight);
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e)
        if (e < counts[u]) value[1][u][e] *= weight[e];
    }
  }

  // Sums over the threads of the row; every thread receives the results.
  template <int values>
  COSMATI_DEVICE void join(Real (&sum)[values]) const {
    int const lanes = team.along < 32 ? team.along : 32, warps = team.along / 32;
    COSMATI_UNROLL
    for (int lane = lanes / 2; lane > 0; lane /= 2) {
      COSMATI_UNROLL
      for (int v = 0; v < values; ++v) sum[v] += arch::exchange(sum[v], lane);
    }
    if (warps <= 1) return;
    int const warp = arch::thread() / 32, first = warp / warps * warps;
    arch::block_barrier();  // the previous sums have been read
    if (arch::thread() % 32 == 0) {
      COSMATI_UNROLL
      for (int v = 0; v < values; ++v) shared.value[v][warp] = sum[v];
    }
    arch::block_barrier();
    COSMATI_UNROLL
    for (int v = 0; v < values; ++v) {
      sum[v] = shared.value[v][first];
      for (int i = 1; i < warps; ++i) sum[v] += shared.value[v][first + i];
    }
  }
  COSMATI_DEVICE Real joined(Real own) const {
    Real sum[1] = {own};
    join(sum);
    return sum[0];
  }

  COSMATI_DEVICE Real sum_of_elements() const {
    Real sums[width] = {};
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) sums[e] += value[0][u][e];
    }
    return sum_of(sums);
  }
  // Sums the squares of the differences from `center`.
  COSMATI_DEVICE Real sum_of_squares(Real center) const {
    Real sums[width] = {};
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        Real const difference = e < counts[u] ? value[0][u][e] - center : Real(0);
        sums[e] += difference * difference;
      }
    }
    return sum_of(sums);
  }
  // Sums the differences from the mean and their squares.
  COSMATI_DEVICE void add_differences(Real (&sum)[2]) const {
    Real sums[width] = {}, squares[width] = {};
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        Real const difference = e < counts[u] ? value[0][u][e] - mean : Real(0);
        sums[e] += difference;
        squares[e] += difference * difference;
      }
    }
    sum[0] = sum_of(sums);
    sum[1] = sum_of(squares);
  }
  COSMATI_DEVICE static Real sum_of(Real (&sums)[width]) {
    COSMATI_UNROLL
    for (int half = width / 2; half > 0; half /= 2) {
      COSMATI_UNROLL
      for (int e = 0; e < half; ++e) sums[e] += sums[e + half];
    }
    return sums[0];
  }

  // Mean and inverse of a row that is not kept: merges the moments of each thread's share by their means.
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
    if (centered()) write_at(1, start(), 1, one);
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) one[e] = inverse;
    write_at(centered() ? 2 : 1, start(), 1, one);
  }

  COSMATI_DEVICE void write(unsigned first) const {
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      if (counts[u] == 0) continue;
      Place const place = place_of(run_of(first, u));
      Real out[width], parameter[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) out[e] = (value[0][u][e] - mean - correction) * inverse;
      if (has(NormOperation::weight)) {
        read_at(1, place, counts[u], parameter);
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e)
          if (e < counts[u]) out[e] *= parameter[e];
      }
      if (has(NormOperation::bias)) {
        read_at(has(NormOperation::weight) ? 2 : 1, place, counts[u], parameter);
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e)
          if (e < counts[u]) out[e] += parameter[e];
      }
      write_at(0, place, policy.whole ? width : counts[u], out);
    }
  }

  COSMATI_DEVICE void read_statistics() {
    if (!exists) return;
    Real one[width];
    if (centered()) {
      read_at(2, start(), 1, one);
      mean = one[0];
    }
    read_at(centered() ? 3 : 2, start(), 1, one);
    inverse = one[0];
  }

  COSMATI_DEVICE Real normalized(int u, int e) const { return (value[0][u][e] - mean) * inverse; }

  // sum: of g, and of g * u
  COSMATI_DEVICE void add_gradients(Real (&sum)[2]) const {
    Real sums[width] = {}, with_u[width] = {};
    COSMATI_UNROLL
    for (int u = 0; u < loaded; ++u) {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        if (e >= counts[u]) continue;
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
      if (counts[u] == 0) continue;
      Real out[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e)
        out[e] = inverse * (value[1][u][e] - means[0] - normalized(u, e) * means[1]);
      write_at(0, place_of(run_of(first, u)), policy.whole ? width : counts[u], out);
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
    read_statistics();
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
COSMATI_KERNEL(Traits::threads, 1)
norm_row_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  Team const team(Traits::policy(params), Traits::threads);
  unsigned const position = static_cast<unsigned>(arch::block_x()) * static_cast<unsigned>(team.across) +
                            static_cast<unsigned>(team.column);
  NormKernel<Traits> kernel(params, team, arch::shared_storage<NormShared<Traits>>(), position);
  kernel.run();
}

}  // namespace cosmati
