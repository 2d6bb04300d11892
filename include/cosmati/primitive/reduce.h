// Reductions of many terms to one result: sums, maximum and minimum, mean and variance. The plan fixes the
// order of every sum. If few results have many terms, the terms are split over blocks; a second launch
// combines the parts.
#pragma once
#include "cosmati/primitive/traits.h"

namespace cosmati {

// sum: each of the function's values separately. max, min: of one value; NaN is propagated. moments: count,
// mean and sum of squared differences from the mean of one value (Welford 1962; combined as in Chan, Golub
// and LeVeque 1979). joined_moments: the same, of terms that are such triples.
enum class Combine : int { sum, max, min, moments, joined_moments };

COSMATI_CONSTEXPR bool is_moments(int operation) {
  return operation == static_cast<int>(Combine::moments) ||
         operation == static_cast<int>(Combine::joined_moments);
}

template <class Real>
COSMATI_DEVICE Real lowest() {
  return static_cast<Real>(-__builtin_bit_cast(double, 0x7ff0000000000000ull));
}

// Returns the mean after adding `step`, which moves it towards `other`. If a mean is infinite, the difference
// is NaN, and the sum of both means is the correct infinity or NaN.
template <class Real>
COSMATI_DEVICE Real joined_mean(Real so_far, Real other, Real step) {
  Real const moved = so_far + step;
  return moved == moved ? moved : so_far + other;
}

// The partial result of some terms: `values` numbers.
template <class Real, int values>
struct Partial {
  Real value[values];

  COSMATI_DEVICE void clear(int operation) {
    Real const first = operation == static_cast<int>(Combine::max)   ? lowest<Real>()
                       : operation == static_cast<int>(Combine::min) ? -lowest<Real>()
                                                                     : Real(0);
    COSMATI_UNROLL
    for (int i = 0; i < values; ++i) value[i] = first;
  }

  COSMATI_DEVICE void join(int operation, Real const (&other)[values]) {
    if (is_moments(operation)) {
      if constexpr (values >= 3) join_moments(other[0], other[1], other[2]);
    } else {
      COSMATI_UNROLL
      for (int i = 0; i < values; ++i) {
        Real const x = other[i];
        if (operation == static_cast<int>(Combine::sum))
          value[i] += x;
        else if (x != x || (operation == static_cast<int>(Combine::max) ? x > value[i] : x < value[i]))
          value[i] = x;
      }
    }
  }

  COSMATI_DEVICE void join_moments(Real count, Real mean, Real squares) {
    if (count == Real(0)) return;
    Real const both = value[0] + count, difference = mean - value[1], share = count / both;
    value[2] += squares + difference * difference * value[0] * share;
    value[1] = joined_mean(value[1], mean, difference * share);
    value[0] = both;
  }
};

// Adds the terms of one loop step to one result; term[i] contains the function's values if there[i].
template <class Real, int values, int count, int inputs_of_function>
COSMATI_DEVICE void absorb(Partial<Real, values>& partial, int operation, bool const (&there)[count],
                           Real const (&term)[count][inputs_of_function]) {
  if (operation == static_cast<int>(Combine::moments)) {
    // The mean of these few terms requires one division for all of them.
    Real number = 0, sum = 0, squares = 0;
    COSMATI_UNROLL
    for (int i = 0; i < count; ++i) {
      number += there[i] ? Real(1) : Real(0);
      sum += there[i] ? term[i][0] : Real(0);
    }
    Real const mean = number > Real(0) ? sum / number : Real(0);
    COSMATI_UNROLL
    for (int i = 0; i < count; ++i) squares += there[i] ? (term[i][0] - mean) * (term[i][0] - mean) : Real(0);
    if constexpr (values >= 3) partial.join_moments(number, mean, squares);
    return;
  }
  Partial<Real, values> step;
  step.clear(operation);
  COSMATI_UNROLL
  for (int i = 0; i < count; ++i)
    if (there[i]) {
      Real one[values];
      COSMATI_UNROLL
      for (int v = 0; v < values; ++v) one[v] = v < inputs_of_function ? term[i][v] : Real(0);
      step.join(operation, one);
    }
  partial.join(operation, step.value);
}

// Adds terms to the moments of adjacent results, which all have the same number of terms: two divisions for
// all of them. term[r][i] counts if there[i].
template <class Real, int values, int results, int count, int inputs_of_function>
COSMATI_DEVICE void absorb_side_by_side(Partial<Real, values> (&partial)[results], bool const (&there)[count],
                                        Real const (&term)[results][count][inputs_of_function]) {
  Real number = 0;
  COSMATI_UNROLL
  for (int i = 0; i < count; ++i) number += there[i] ? Real(1) : Real(0);
  if (number == Real(0)) return;
  Real const part = Real(1) / number, both = partial[0].value[0] + number, share = number / both;
  COSMATI_UNROLL
  for (int r = 0; r < results; ++r) {
    if constexpr (values >= 3) {
      Real sum = 0, squares = 0;
      COSMATI_UNROLL
      for (int i = 0; i < count; ++i) sum += there[i] ? term[r][i][0] : Real(0);
      Real const mean = sum * part;
      COSMATI_UNROLL
      for (int i = 0; i < count; ++i) {
        Real const difference = there[i] ? term[r][i][0] - mean : Real(0);
        squares += difference * difference;
      }
      Real(&all)[values] = partial[r].value;
      Real const difference = mean - all[1];
      all[2] += squares + difference * difference * all[0] * share;
      all[1] = joined_mean(all[1], mean, difference * share);
      all[0] = both;
    }
  }
}

// Results per thread: one for each element of a run along the positions, otherwise one.
template <class Traits>
inline constexpr int results_of = Traits::runs_of_terms ? 1 : Traits::width;

template <class Traits>
struct ReduceShared {
  // (result, value, thread)
  typename Traits::Real value[results_of<Traits>][Traits::Final::inputs][Traits::threads];
};

// Processes a thread's next `unroll` runs of terms, starting with number i of its block's `count`; `all`: all
// exist and are complete.
template <bool all, class Traits, int values>
COSMATI_DEVICE void reduce_runs(PrimitiveParameters const& params, Team const& team, Place const& kept,
                                int across_count, unsigned begin, unsigned count, unsigned i,
                                RawInputs<Traits> const& first,
                                Partial<typename Traits::Real, values> (&partial)[results_of<Traits>]) {
  using Real = typename Traits::Real;
  constexpr int width = Traits::width, results = results_of<Traits>, unroll = Traits::unroll;
  constexpr int from_function = Traits::Function::outputs;
  constexpr int elements = width / results;  // elements of a run per result
  PrimitivePolicy const policy = Traits::policy(params);
  auto const members = static_cast<unsigned>(team.along);
  RawInputs<Traits> raw[unroll];
  int run_counts[unroll] = {};
  COSMATI_UNROLL
  for (int u = 0; u < unroll; ++u) {
    unsigned const term = i + static_cast<unsigned>(u) * members;
    if (!all && term >= count) break;
    Place const place(params.axis + policy.kept, policy.terms, begin + term);
    run_counts[u] = all                    ? width
                    : policy.runs_of_terms ? run_count<width>(params.run_extent, place.at[0])
                                           : across_count;
    raw[u].fetch(
        params,
        [&](PrimitiveTensor const& tensor) {
          return kept.offset(tensor.stride) + place.offset(tensor.stride + policy.kept);
        },
        run_counts[u], policy.fixed, &first);
  }
  Real in[unroll][Traits::inputs][width];
  COSMATI_UNROLL
  for (int u = 0; u < unroll; ++u)
    if (run_counts[u] > 0) raw[u].unpack(params, in[u]);
  bool there[results][unroll * elements];
  Real term[results][unroll * elements][from_function];
  COSMATI_UNROLL
  for (int u = 0; u < unroll; ++u) {
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) {
      int const result = results == 1 ? 0 : e, at = u * elements + (results == 1 ? e : 0);
      there[result][at] = all || e < run_counts[u];
      Real of[Traits::inputs];
      COSMATI_UNROLL
      for (int k = 0; k < Traits::inputs; ++k) of[k] = in[u][k][e];
      if (there[result][at]) Traits::Function::apply(params, of, term[result][at]);
    }
  }
  if (results > 1 && policy.operation == static_cast<int>(Combine::moments)) {
    bool exist[unroll * elements];
    COSMATI_UNROLL
    for (int u = 0; u < unroll * elements; ++u) exist[u] = there[0][u];
    absorb_side_by_side(partial, exist, term);
    return;
  }
  COSMATI_UNROLL
  for (int r = 0; r < results; ++r) absorb(partial[r], policy.operation, there[r], term[r]);
}

// Grid: (ceil(positions / across), splits).
template <class Traits>
COSMATI_KERNEL(Traits::threads, 2)
reduce_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  using Real = typename Traits::Real;
  constexpr int width = Traits::width, results = results_of<Traits>, unroll = Traits::unroll;
  constexpr int values = Traits::Final::inputs;
  PrimitivePolicy const policy = Traits::policy(params);
  auto& shared = arch::shared_storage<ReduceShared<Traits>>();
  Team const team(policy, Traits::threads);
  unsigned const position = static_cast<unsigned>(arch::block_x()) * static_cast<unsigned>(team.across) +
                            static_cast<unsigned>(team.column);
  bool const exists = position < params.positions;
  Place const kept(params.axis, policy.kept, exists ? position : 0);
  int const across_count = results == 1 ? 1 : run_count<width>(params.run_extent, kept.at[0]);
  unsigned const begin = static_cast<unsigned>(arch::block_y()) * params.terms_of_split;
  unsigned const left = params.terms > begin ? params.terms - begin : 0;
  unsigned const count = exists ? (left < params.terms_of_split ? left : params.terms_of_split) : 0;

  Partial<Real, values> partial[results];
  COSMATI_UNROLL
  for (int r = 0; r < results; ++r) partial[r].clear(policy.operation);
  auto const members = static_cast<unsigned>(team.along);
  // Inputs that do not vary along the terms are loaded once.
  RawInputs<Traits> first;
  if (policy.fixed != 0 && count > 0)
    first.fetch(
        params, [&](PrimitiveTensor const& tensor) { return kept.offset(tensor.stride); },
        policy.runs_of_terms ? width : across_count);
  for (unsigned i = static_cast<unsigned>(team.member); i < count; i += members * unroll) {
    if (policy.whole && i + (unroll - 1) * members < count)
      reduce_runs<true, Traits>(params, team, kept, across_count, begin, count, i, first, partial);
    else
      reduce_runs<false, Traits>(params, team, kept, across_count, begin, count, i, first, partial);
  }

  for (int half = team.along / 2; half > 0; half /= 2) {
    if (team.member >= half && team.member < 2 * half) {
      COSMATI_UNROLL
      for (int r = 0; r < results; ++r)
        for (int v = 0; v < values; ++v) shared.value[r][v][team.slot(team.member)] = partial[r].value[v];
    }
    arch::block_barrier();
    if (team.member < half) {
      COSMATI_UNROLL
      for (int r = 0; r < results; ++r) {
        Real other[values];
        COSMATI_UNROLL
        for (int v = 0; v < values; ++v) other[v] = shared.value[r][v][team.slot(team.member + half)];
        partial[r].join(policy.operation, other);
      }
    }
  }
  if (team.member != 0 || !exists) return;
  Real in[values][results], out[Traits::outputs][results];
  COSMATI_UNROLL
  for (int r = 0; r < results; ++r) {
    COSMATI_UNROLL
    for (int v = 0; v < values; ++v) in[v][r] = partial[r].value[v];
  }
  apply_to_run<typename Traits::Final>(params, in, out);
  Index const split = arch::block_y() * params.split_stride;
  store_outputs<Traits>(
      params, [&](PrimitiveTensor const& tensor) { return kept.offset(tensor.stride) + split; }, across_count,
      out);
}

}  // namespace cosmati
