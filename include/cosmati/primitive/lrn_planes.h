// Local response normalization across channels of planes that begin anywhere within 16 bytes: adjacent
// channels are one stretch of memory, of which a block copies what it needs to shared memory, and the results
// back, by 16 bytes.
#pragma once
#include "cosmati/primitive/contiguous_copy.h"
#include "cosmati/primitive/lrn_size.h"
#include "cosmati/primitive/math.h"

namespace cosmati {

// Input: x. scalar: k, alpha / size, beta. `classes`: channels. The axes: a plane of policy.step positions,
// groups of channels (policy.columns_axis), and the others. x and y have the same type, and their elements
// the same place within 16 bytes, also in shared memory, whose row r is channel first - before + r.
template <class Traits>
struct LrnPlanes {
  using Real = typename Traits::Real;
  using X = typename AccessAt<0, typename Traits::Inputs>::type;
  using Y = typename AccessAt<0, typename Traits::Outputs>::type;
  static constexpr int width = Traits::width, channels = Traits::unroll, size = Traits::window.columns,
                       threads = Traits::threads;
  // Channels of a window before and after its center.
  static constexpr int before = (size - 1) / 2, after = size / 2, kept = before + after;
  using Run = typename X::template Run<width>;
  using Element = typename X::Element;
  using FromX = ContiguousCopy<X, width, threads, Traits::bulk>;
  // Slower in f32 (docs/decisions/0022).
  using ToY = ContiguousCopy<Y, width, threads, Traits::bulk && sizeof(Element) == 2>;

  PrimitiveParameters const& params;
  PrimitivePolicy const policy;
  Run* const shared;
  Index const from, to;  // offsets of channel `first` in x and y
  int const first;       // channel

  // The place in shared memory of the first element of row r.
  COSMATI_DEVICE int place_of(int r) const {
    Index const start = from - before * Index{policy.step};
    return static_cast<int>(start & (width - 1)) + r * policy.step;
  }
  COSMATI_DEVICE Element* row(int r) const { return reinterpret_cast<Element*>(shared) + place_of(r); }

  COSMATI_DEVICE void load() const {
    int const rows = lrn_channels(policy), absent = before - first, there = params.classes + absent,
              begin = absent > 0 ? absent : 0, end = there < rows ? there : rows;
    Index const offset = (from + (begin - before) * Index{policy.step}) & -width;
    int const place = place_of(begin) & -width, count = (end - begin) * policy.step + place_of(begin) - place;
    FromX::load(params.tensor[0], offset, count, shared + static_cast<unsigned>(place) / width,
                reinterpret_cast<arch::Barrier*>(shared + lrn_runs(policy)));
    if (begin == 0 && end == rows) return;
    // Channels that do not exist; copies around them may have written here.
    COSMATI_NO_UNROLL
    for (int r = 0; r < rows; ++r)
      if (r < begin || r >= end) {
        COSMATI_NO_UNROLL
        for (int p = arch::thread(); p < policy.step; p += threads) row(r)[p] = Element{};
      }
    arch::block_barrier();
  }

  // sum[i]: of the `size` values starting with value i, from sums of 1, 2, 4, ... of them.
  template <int many>
  COSMATI_DEVICE static void add_windows(Real (&value)[many], Real (&sum)[channels]) {
    int done = 0;
    COSMATI_UNROLL
    for (int span = 1; span <= size; span *= 2) {
      if ((size & span) != 0) {
        COSMATI_UNROLL
        for (int i = 0; i < channels; ++i) sum[i] = done > 0 ? sum[i] + value[i + done] : value[i];
        done += span;
      }
      COSMATI_UNROLL
      for (int i = 0; i + span < many; ++i) value[i] += value[i + span];
    }
  }

  // Replaces x by y. A thread computes all channels of its positions, and no other thread reads them.
  COSMATI_DEVICE void compute() const {
    auto k = static_cast<Real>(params.scalar[0]), share = static_cast<Real>(params.scalar[1]),
         beta = static_cast<Real>(params.scalar[2]);
    arch::fence_registers(k);  // otherwise, they are converted in the loop
    arch::fence_registers(share);
    arch::fence_registers(beta);
    int const pitch = policy.step;
    for (int p = arch::thread(); p < pitch; p += threads) {
      Element* at = row(0) + p;
      Real x[channels + kept];
      COSMATI_UNROLL
      for (int i = 0; i < kept; ++i) x[i] = widened<Real>(at[i * pitch]);
      for (int left = policy.groups; left > 0; --left, at += channels * pitch) {
        Real square[channels + kept], sum[channels];
        COSMATI_UNROLL
        for (int i = kept; i < channels + kept; ++i) x[i] = widened<Real>(at[i * pitch]);
        COSMATI_UNROLL
        for (int i = 0; i < channels + kept; ++i) square[i] = x[i] * x[i];
        add_windows(square, sum);
        COSMATI_UNROLL
        for (int i = 0; i < channels; ++i)
          at[(i + before) * pitch] =
              arch::number_cast<Element>(x[i + before] * power(k + share * sum[i], -beta));
        COSMATI_UNROLL
        for (int i = 0; i < kept; ++i) x[i] = x[i + channels];
      }
    }
    ToY::publish();
    arch::block_barrier();
  }

  COSMATI_DEVICE void store() const {
    int const left = params.classes - first, own = channels * policy.groups;
    ToY::template store<Real>(params.tensor[primitive_inputs], to, row(before),
                              (left < own ? left : own) * policy.step);
  }
};

// Grid: positions blocks. Resident blocks leave 64 to 85 registers per thread.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 960 / Traits::threads)
lrn_plane_tile_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  using Planes = LrnPlanes<Traits>;
  PrimitivePolicy const policy = Traits::policy(params);
  Place const place(params.axis, policy.kept, static_cast<unsigned>(arch::block_x()));
  Planes const planes{params,
                      policy,
                      &arch::shared_storage<typename Planes::Run>(),
                      place.offset(params.tensor[0].stride),
                      place.offset(params.tensor[primitive_inputs].stride),
                      static_cast<int>(place.at[policy.columns_axis]) * Planes::channels * policy.groups};
  planes.load();
  planes.compute();
  planes.store();
}

}  // namespace cosmati
