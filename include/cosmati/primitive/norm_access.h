// Common to the kernels of layer and RMS normalization: access to the runs of a row, and sums over its
// threads, always in the same order.
#pragma once
#include "cosmati/primitive/norm_operation.h"
#include "cosmati/primitive/reduce.h"

namespace cosmati {

// The warps' sums, (set, value, warp): successive joins alternate between two sets.
template <class Traits, int values = 2>
struct alignas(16) NormShared {
  typename Traits::Real value[2][values][Traits::threads / 32];
};

template <class Traits, int max_values = 2>
struct NormAccess {
  using Real = typename Traits::Real;
  using Shared = NormShared<Traits, max_values>;
  static constexpr int width = Traits::width;
  template <int i>
  using Input = typename AccessAt<i, typename Traits::Inputs>::type;
  template <int i>
  using Raw = typename Input<i>::template Raw<width>;

  PrimitiveParameters const& params;
  PrimitivePolicy const policy;
  Team const team;
  Shared& shared;
  int joins = 0;

  COSMATI_DEVICE NormAccess(PrimitiveParameters const& all, Team const& mine, Shared& memory)
      : params(all), policy(Traits::policy(all)), team(mine), shared(memory) {}

  COSMATI_DEVICE bool has(int bit) const { return (policy.operation & bit) != 0; }
  COSMATI_DEVICE bool centered() const { return !has(NormOperation::rms); }

  COSMATI_DEVICE Place place_of(unsigned run) const {
    return Place(params.axis + policy.kept, policy.terms, run);
  }
  // The position of a run, clamped to the last one: without branches, all loads are in flight at once.
  COSMATI_DEVICE Place place_near(unsigned run) const {
    return place_of(run < params.terms ? run : params.terms - 1);
  }
  COSMATI_DEVICE Place row_at(unsigned position) const { return Place(params.axis, policy.kept, position); }
  COSMATI_DEVICE Index offset(PrimitiveTensor const& tensor, Place const& row, Place const& place) const {
    return row.offset(tensor.stride) + place.offset(tensor.stride + policy.kept);
  }

  template <int i>
  COSMATI_DEVICE void fetch(Place const& row, Place const& place, int count, Raw<i>& to) const {
    PrimitiveTensor const& tensor = params.tensor[i];
    Input<i>::template fetch<width>(params, tensor, ContiguousRange{offset(tensor, row, place), count}, to);
  }
  // Loads the input whose index depends on the operation.
  template <int i = 0>
  COSMATI_DEVICE void read_at(int number, Place const& row, Place const& place, int count,
                              Real (&to)[width]) const {
    if constexpr (i < Traits::Inputs::size && i < 5) {
      if (number != i) return read_at<i + 1>(number, row, place, count, to);
      PrimitiveTensor const& tensor = params.tensor[i];
      Input<i>::load(params, tensor, ContiguousRange{offset(tensor, row, place), count}, to);
    }
  }
  template <int i = 0>
  COSMATI_DEVICE void write_at(int number, Place const& row, Place const& place, int count,
                               Real const (&from)[width], Index more = 0) const {
    if constexpr (i < Traits::Outputs::size && i < 3) {
      if (number != i) return write_at<i + 1>(number, row, place, count, from, more);
      using Access = typename AccessAt<i, typename Traits::Outputs>::type;
      PrimitiveTensor const& tensor = params.tensor[primitive_inputs + i];
      Access::store(tensor, ContiguousRange{offset(tensor, row, place) + more, count}, from);
    }
  }
  // Reads the saved statistics of a row for its gradient.
  COSMATI_DEVICE void read_statistics(Place const& row, Real& mean, Real& inverse) const {
    Real one[width];
    mean = 0;
    if (centered()) {
      read_at(2, row, place_of(0), 1, one);
      mean = one[0];
    }
    read_at(centered() ? 3 : 2, row, place_of(0), 1, one);
    inverse = one[0];
  }

  // Sums over the threads of the row; every thread receives the results.
  template <int values>
  COSMATI_DEVICE void join(Real (&sum)[values]) {
    int const lanes = team.along < 32 ? team.along : 32, warps = team.along / 32;
    COSMATI_UNROLL
    for (int lane = lanes / 2; lane > 0; lane /= 2) {
      COSMATI_UNROLL
      for (int v = 0; v < values; ++v) sum[v] += arch::exchange(sum[v], lane);
    }
    if (warps <= 1) return;
    int const warp = arch::thread() / 32, first = warp / warps * warps;
    // This set was last read before the previous join's barrier, so it may be overwritten.
    auto& slots = shared.value[joins++ % 2];
    if (arch::thread() % 32 == 0) {
      COSMATI_UNROLL
      for (int v = 0; v < values; ++v) slots[v][warp] = sum[v];
    }
    arch::block_barrier();
    // 16 bytes at a time, if the number of warps allows it.
    constexpr int some = 16 / static_cast<int>(sizeof(Real));
    COSMATI_UNROLL
    for (int v = 0; v < values; ++v) {
      Real total = 0;
      if (warps % some == 0) {
        for (int i = 0; i < warps; i += some) {
          auto const of_warps = arch::load<Vector<Real, some>>(&slots[v][first + i]);
          COSMATI_UNROLL
          for (int j = 0; j < some; ++j) total += of_warps[j];
        }
      } else {
        for (int i = 0; i < warps; ++i) total += slots[v][first + i];
      }
      sum[v] = total;
    }
  }
  COSMATI_DEVICE Real joined(Real own) {
    Real sum[1] = {own};
    join(sum);
    return sum[0];
  }

  template <int count>
  COSMATI_DEVICE static Real sum_of(Real (&sums)[count]) {
    COSMATI_UNROLL
    for (int half = count / 2; half > 0; half /= 2) {
      COSMATI_UNROLL
      for (int e = 0; e < half; ++e) sums[e] += sums[e + half];
    }
    return sums[0];
  }
};

}  // namespace cosmati
