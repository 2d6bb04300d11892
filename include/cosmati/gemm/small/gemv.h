// The main loop of products with few rows. B, which is most of the data, is loaded from global memory to
// registers once, with the widest loads that its alignment permits. The threads of a block share a tile along
// k and add their sums in a fixed order.
#pragma once
#include "cosmati/gemm/epilogue_schedule.h"
#include "cosmati/gemm/small/streaming_loader.h"
#include "cosmati/gemm/steps.h"
#include "cosmati/gemm/traits.h"

namespace cosmati {

// A thread's share of a tile's sums: elements thread, thread + threads, ... in row-major order.
template <class Sum_, int count_>
struct OwnSums {
  using Sum = Sum_;
  using Register = Sum;
  static constexpr int count = count_, registers = count_;
  Sum value[count] = {};
  template <class Visit>
  COSMATI_DEVICE void for_each(Visit&& visit) {
    COSMATI_UNROLL
    for (int i = 0; i < count; ++i) visit(value[i]);
  }
  COSMATI_DEVICE static void add(Sum& sum, Sum more) { sum += more; }
};

template <GemmPolicy gemm_policy, class SourceA_, class SourceB_, class Sum_>
requires(gemm_policy.main_loop == MainLoop::gemv) struct ProductTraits<gemm_policy, SourceA_, SourceB_, Sum_>
    : CheckedProduct<gemm_policy, SourceA_, SourceB_, Sum_> {
  static constexpr GemmPolicy policy = gemm_policy;
  using SourceA = SourceA_;
  using SourceB = SourceB_;
  using Sum = Sum_;
  static constexpr int threads = policy.threads(), sums = policy.block_m * policy.block_n;
  using Product = OwnSums<Sum, (sums + threads - 1) / threads>;
  struct SharedStorage {
    Sum sum[policy.warps_k][sums];
  };
};

template <class Traits>
struct MainLoopOf<MainLoop::gemv, Traits> {
  using SharedStorage = typename Traits::SharedStorage;
  using Sum = typename Traits::Sum;
  using SourceA = typename Traits::SourceA;
  using SourceB = typename Traits::SourceB;

  // sums += a(m, k) * b(k, n) over the steps' k, for the tile of the sources.
  COSMATI_DEVICE static void run(typename Traits::Product& sums, SharedStorage& shared, SourceA const& a,
                                 SourceB const& b, StepRange steps) {
    Place const place(arch::thread());
    Sum own[rows][columns] = {};
    if (steps.first < steps.last) add_products(own, a, b, steps, place);
    add_lanes(own);
    if (place.lane_k == 0) {
      COSMATI_UNROLL
      for (int i = 0; i < rows; ++i) {
        COSMATI_UNROLL
        for (int j = 0; j < columns; ++j) {
          int const first = place.column(deep ? j : j - j % LoaderB::vector);
          int const column = deep ? first : LoaderB::first_of(b, first) + j % LoaderB::vector;
          if (deep || column >= first) shared.sum[place.warp_k][i * policy.block_n + column] = own[i][j];
        }
      }
    }
    arch::block_barrier();
    COSMATI_UNROLL
    for (int e = 0; e < Traits::Product::count; ++e) {
      int const index = arch::thread() + e * Traits::threads;
      if (Traits::sums % Traits::threads != 0 && index >= Traits::sums) continue;
      COSMATI_UNROLL
      for (int warp = 0; warp < policy.warps_k; ++warp) sums.value[e] += shared.sum[warp][index];
    }
  }

 private:
  static constexpr GemmPolicy policy = Traits::policy;
  static constexpr bool deep = SourceB::along == Along::k;
  static constexpr int rows = policy.block_m, columns = policy.thread_n;
  static constexpr int lanes_n = policy.lanes_n(), lanes_k = policy.lanes_k();
  // Adjacent lanes load adjacent vectors of B. If these lie along k, a thread has several of them in a step,
  // with those of the other threads in between; otherwise it has adjacent depths, so that it loads vectors of
  // A along k.
  static constexpr int depth = deep ? imin(SourceB::width, policy.thread_k()) : policy.thread_k();
  static constexpr int groups = policy.thread_k() / depth, apart = lanes_k * policy.warps_k * depth;
  using LoaderA = streaming::Loader<SourceA, rows, depth, 1>;
  using LoaderB = streaming::Loader<SourceB, columns, depth, groups>;
  static constexpr LinePartition partition{policy.warp_n, lanes_n, columns, deep ? columns : LoaderB::vector};

  struct Place {
    int warp_n, warp_k, lane_n, lane_k;
    COSMATI_DEVICE explicit Place(int thread)
        : warp_n(thread / 32 % policy.warps_n()),
          warp_k(thread / 32 / policy.warps_n()),
          lane_n(deep ? thread % 32 / lanes_k : thread % lanes_n),
          lane_k(deep ? thread % lanes_k : thread % 32 / lanes_n) {}
    COSMATI_DEVICE int column(int j) const { return partition.position(warp_n, lane_n, j); }
    COSMATI_DEVICE int first_depth() const { return (warp_k * lanes_k + lane_k) * depth; }
  };

  COSMATI_DEVICE static void add_products(Sum (&own)[rows][columns], SourceA const& a, SourceB const& b,
                                          StepRange steps, Place const& place) {
    LoaderA load_a(a, place.first_depth(), [](int i) { return i; });
    LoaderB load_b(b, place.first_depth(), [&](int j) { return place.column(j); });
    int const whole = policy.full_tiles
                          ? steps.last
                          : imin(steps.last, imin(load_a.whole_steps(rows, policy.block_k),
                                                  load_b.whole_steps(policy.block_n, policy.block_k)));
    int step = steps.first;
    COSMATI_NO_UNROLL
    for (; step < whole; ++step) add_step<true>(own, load_a, load_b, step);
    if constexpr (!policy.full_tiles) {
      COSMATI_NO_UNROLL
      for (; step < steps.last; ++step) add_step<false>(own, load_a, load_b, step);
    }
  }

  template <bool whole>
  COSMATI_DEVICE static void add_step(Sum (&own)[rows][columns], LoaderA& load_a, LoaderB& load_b, int step) {
    Index const first = Index{policy.block_k} * step;
    auto const step_a = load_a.step(first);
    auto const step_b = load_b.step(first);
    if constexpr (whole) {
      COSMATI_UNROLL
      for (int group = 0; group < groups; ++group) load_b.load(group, step_b, group * apart);
      COSMATI_UNROLL
      for (int group = 0; group < groups; ++group) {
        load_a.load(0, step_a, group * apart);
        multiply(own, load_a, load_b, group);
      }
    } else {
      COSMATI_NO_UNROLL
      for (int group = 0; group < groups; ++group) {
        load_b.load_parts(step_b, group * apart);
        load_a.load_parts(step_a, group * apart);
        multiply(own, load_a, load_b, 0);
      }
    }
  }

  // Adds the products of a block of A and block `group` of B.
  COSMATI_DEVICE static void multiply(Sum (&own)[rows][columns], LoaderA const& load_a, LoaderB const& load_b,
                                      int group) {
    COSMATI_UNROLL
    for (int k = 0; k < depth; ++k) {
      Sum a[rows], b[columns];
      COSMATI_UNROLL
      for (int i = 0; i < rows; ++i) a[i] = load_a.template get<Sum>(0, i, k);
      COSMATI_UNROLL
      for (int j = 0; j < columns; ++j) b[j] = load_b.template get<Sum>(group, j, k);
      for_each_product<rows, columns>(
          [&](int i, int j) { own[i][j] = arch::multiply_add(a[i], b[j], own[i][j]); });
    }
  }

  // Adds the sums of the lanes that share columns; all of them receive the total.
  COSMATI_DEVICE static void add_lanes(Sum (&own)[rows][columns]) {
    COSMATI_UNROLL
    for (int mask = deep ? 1 : lanes_n; mask < (deep ? lanes_k : 32); mask *= 2) {
      COSMATI_UNROLL
      for (int i = 0; i < rows; ++i) {
        COSMATI_UNROLL
        for (int j = 0; j < columns; ++j) own[i][j] += arch::exchange(own[i][j], mask);
      }
    }
  }
};

// Each thread stores its own elements, one at a time: they are few.
template <class Traits, class Epilogue, class Destination>
requires(Traits::policy.main_loop ==
         MainLoop::gemv) struct EpilogueScheduleOf<EpilogueSchedule::direct, Traits, Epilogue, Destination> {
  struct SharedStorage {};
  COSMATI_DEVICE static void run(typename Traits::Product const& sums, SharedStorage&,
                                 typename Epilogue::Arguments const& arguments,
                                 typename Destination::Arguments const& destination, TileOfResult const& at) {
    using Real = typename Epilogue::Real;
    typename Epilogue::Tile const tile(arguments, at.batch, at.first_m, at.first_n);
    typename Destination::Tile const d(destination, at.batch, at.first_m, at.first_n);
    COSMATI_UNROLL
    for (int e = 0; e < Traits::Product::count; ++e) {
      int const index = arch::thread() + e * Traits::threads;
      int const m = index / Traits::policy.block_n, n = index % Traits::policy.block_n;
      if (m >= imin(at.rows, Traits::policy.block_m) || n >= at.columns) continue;
      Real value[1] = {arch::number_cast<Real>(sums.value[e])};
      Epilogue::apply(tile, m, n, 1, value);
      d.store(m, n, 1, value);
    }
  }
};

}  // namespace cosmati
