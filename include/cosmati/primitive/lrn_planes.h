// Local response normalization across channels of planes that begin anywhere within 16 bytes: adjacent
// channels are one stretch of memory, of which a block copies what it needs to shared memory, and the results
// back, by 16 bytes.
#pragma once
#include "cosmati/primitive/lrn_size.h"
#include "cosmati/primitive/math.h"
#include "cosmati/primitive/traits.h"

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

  // Calls each(i) for this thread's share of [0, count): four at a time, whose addresses differ by constants,
  // without conditions, since the compiler would compute the addresses again behind each of them.
  template <class Each>
  COSMATI_DEVICE static void for_each(int count, Each const& each) {
    int i = arch::thread();
    COSMATI_NO_UNROLL
    for (; i + 3 * threads < count; i += 4 * threads) {
      COSMATI_UNROLL
      for (int u = 0; u < 4; ++u) each(i + u * threads);
    }
    COSMATI_NO_UNROLL
    for (; i < count; i += threads) each(i);
  }
  // Copies `count` elements.
  COSMATI_DEVICE void copy(Index offset, int place, int count) const {
    X::copy(shared[static_cast<unsigned>(place) / width], params.tensor[0], ContiguousRange{offset, count});
  }
  COSMATI_DEVICE void load() const {
    int const rows = lrn_channels(policy), absent = before - first, there = params.classes + absent,
              begin = absent > 0 ? absent : 0, end = there < rows ? there : rows;
    Index const offset = (from + (begin - before) * Index{policy.step}) & -width;
    int const place = place_of(begin) & -width, all = (end - begin) * policy.step + place_of(begin) - place,
              full = all / width;
    for_each(full, [&](int i) { copy(offset + i * Index{width}, place + i * width, width); });
    if (all % width > 0 && arch::thread() == full % threads)
      copy(offset + full * width, place + full * width, all % width);
    arch::commit_copies();
    arch::wait_copies<0>();
    arch::block_barrier();
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
    arch::block_barrier();
  }

  // Stores elements of shared memory, which are of type Real only if y is, or in the emulator.
  template <int many>
  COSMATI_DEVICE void put(Index offset, Element const* element) const {
    PrimitiveTensor const& y = params.tensor[primitive_inputs];
    auto const some = arch::load<Vector<Element, many>>(element);
    if constexpr (is_same<Element, Real>)
      Y::store(y, ContiguousRange{offset, many}, some.element);
    else
      arch::store_global(arch::as_global(static_cast<Element*>(y.data)) + offset, some);
  }

  COSMATI_DEVICE void store() const {
    int const left = params.classes - first, own = channels * policy.groups;
    int const count = (left < own ? left : own) * policy.step, before_runs = -place_of(before) & (width - 1),
              head = before_runs < count ? before_runs : count, tail = (count - head) % width;
    Element const* const at = row(before);
    for_each((count - head) / width,
             [&](int i) { put<width>(to + head + i * Index{width}, at + head + i * width); });
    // The elements outside complete 16 bytes, fewer than `width` at each end.
    int const e = arch::thread(), i = e < width ? e : count - tail + e - width;
    if (e < width ? e < head : e < width + tail) put<1>(to + i, at + i);
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
