// Batch normalisation with the statistics of its own input: y = f(x, scale, bias, mean, variance), where mean
// and variance are those of all x of a channel. A cluster of blocks keeps a channel in shared memory: x is
// read once.
#pragma once
#include "cosmati/arch/cluster.h"
#include "cosmati/primitive/reduce.h"

namespace cosmati {

// Behind it lie as many runs as the launch has room for: (run of a thread, thread).
template <class Traits>
struct alignas(16) ChannelShared {
  using Run = Vector<typename Traits::Real, Traits::width>;
  // count, mean, sum of squared differences
  typename Traits::Real of_warp[Traits::threads / 32][3], of_block[3];

  COSMATI_DEVICE Run* runs() { return reinterpret_cast<Run*>(this + 1); }
};

template <class Traits>
struct ChannelKernel {
  using Real = typename Traits::Real;
  using Shared = ChannelShared<Traits>;
  static constexpr int width = Traits::width, unroll = Traits::unroll, threads = Traits::threads;
  using X = typename AccessAt<0, typename Traits::Inputs>::type;

  PrimitiveParameters const& params;
  PrimitivePolicy const policy;
  Shared& shared;
  int const block;  // of the cluster
  Place const kept;

  // Runs of this thread: number i is run (i * cluster + block) * threads + thread of the channel.
  COSMATI_DEVICE unsigned run_of(int i) const {
    return static_cast<unsigned>((i * policy.cluster + block) * threads + arch::thread());
  }
  COSMATI_DEVICE int count_of(Place const& place) const {
    return policy.whole ? width : run_count<width>(params.run_extent, place.at[0]);
  }
  COSMATI_DEVICE Index offset(PrimitiveTensor const& tensor, Place const& place) const {
    return kept.offset(tensor.stride) + place.offset(tensor.stride + policy.kept);
  }

  struct Batch {
    Real value[unroll][width];
    int count[unroll];
  };
  COSMATI_DEVICE void load(int first, Batch& batch) const {
    COSMATI_UNROLL
    for (int u = 0; u < unroll; ++u) {
      unsigned const run = run_of(first + u);
      batch.count[u] = 0;
      if (run >= params.terms) continue;
      Place const place(params.axis + policy.kept, policy.terms, run);
      batch.count[u] = count_of(place);
      X::load(params, params.tensor[0], Stretch{offset(params.tensor[0], place), batch.count[u]},
              batch.value[u]);
    }
  }

  COSMATI_DEVICE void keep(int first, Batch const& batch, Partial<Real, 3>& partial) const {
    bool there[unroll * width];
    Real term[unroll * width][1];
    COSMATI_UNROLL
    for (int u = 0; u < unroll; ++u) {
      typename Shared::Run run;
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        run[e] = term[u * width + e][0] = batch.value[u][e];
        there[u * width + e] = e < batch.count[u];
      }
      if (batch.count[u] > 0) shared.runs()[(first + u) * threads + arch::thread()] = run;
    }
    if (policy.whole && batch.count[unroll - 1] > 0)
      add_all(batch, partial);
    else
      absorb(partial, static_cast<int>(Combine::moments), there, term);
  }

  // All of a batch; several sums side by side, since additions wait for each other.
  COSMATI_DEVICE static void add_all(Batch const& batch, Partial<Real, 3>& partial) {
    constexpr int count = unroll * width;
    Real sums[width] = {}, squares[width] = {};
    COSMATI_UNROLL
    for (int u = 0; u < unroll; ++u) {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) sums[e] += batch.value[u][e];
    }
    Real const mean = sum_of(sums) * (Real(1) / Real(count));
    COSMATI_UNROLL
    for (int u = 0; u < unroll; ++u) {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        Real const difference = batch.value[u][e] - mean;
        squares[e] += difference * difference;
      }
    }
    partial.join_moments(Real(count), mean, sum_of(squares));
  }
  COSMATI_DEVICE static Real sum_of(Real const (&values)[width]) {
    Real sum = values[0];
    COSMATI_UNROLL
    for (int e = 1; e < width; ++e) sum += values[e];
    return sum;
  }

  COSMATI_DEVICE static Real sum_of_lanes(Real value) {
    COSMATI_UNROLL
    for (int lane = 16; lane > 0; lane /= 2) value += arch::exchange(value, lane);
    return value;
  }

  // Of `count` partial results: with the mean of all, one division serves for all of them.
  template <int most, class At>
  COSMATI_DEVICE static Partial<Real, 3> joined(int count, At const& at) {
    Real part[most][3];
    Partial<Real, 3> all;
    all.clear(static_cast<int>(Combine::moments));
    Real sum = 0;
    COSMATI_UNROLL
    for (int i = 0; i < most; ++i) {
      COSMATI_UNROLL
      for (int v = 0; v < 3; ++v) part[i][v] = i < count ? at(i)[v] : Real(0);
    }
    COSMATI_UNROLL
    for (int i = 0; i < most; ++i) {
      all.value[0] += part[i][0];
      sum += part[i][0] * part[i][1];
    }
    all.value[1] = all.value[0] > Real(0) ? sum / all.value[0] : Real(0);
    COSMATI_UNROLL
    for (int i = 0; i < most; ++i) {
      Real const difference = part[i][1] - all.value[1];
      all.value[2] += part[i][2] + part[i][0] * difference * difference;
    }
    return all;
  }

  // In one order, whoever asks: lanes, then warps, then blocks.
  COSMATI_DEVICE void join(Partial<Real, 3>& partial) const {
    Real const(&own)[3] = partial.value;
    Real const number = sum_of_lanes(own[0]), sum = sum_of_lanes(own[0] * own[1]);
    Real const mean = number > Real(0) ? sum / number : Real(0), difference = own[1] - mean;
    Real const squares = sum_of_lanes(own[2] + own[0] * difference * difference);
    if (arch::thread() % 32 == 0) {
      Real(&of_warp)[3] = shared.of_warp[arch::thread() / 32];
      of_warp[0] = number;
      of_warp[1] = mean;
      of_warp[2] = squares;
    }
    arch::block_barrier();
    if (arch::thread() == 0) {
      partial = joined<threads / 32>(threads / 32, [&](int i) { return shared.of_warp[i]; });
      COSMATI_UNROLL
      for (int v = 0; v < 3; ++v) shared.of_block[v] = partial.value[v];
    }
    arch::cluster_arrive();
    arch::cluster_wait();
    constexpr int most_blocks = 8;
    partial = joined<most_blocks>(policy.cluster, [&](int i) { return arch::in_block(shared.of_block, i); });
    arch::cluster_arrive();  // nobody leaves before all have read
  }

  COSMATI_DEVICE void run() const {
    Partial<Real, 3> partial;
    partial.clear(static_cast<int>(Combine::moments));
    // The next runs are on their way while these are added.
    Batch batch, next;
    load(0, batch);
    int i = 0;
    for (; run_of(i) - static_cast<unsigned>(arch::thread()) < params.terms; i += unroll) {
      load(i + unroll, next);
      keep(i, batch, partial);
      batch = next;
    }
    Real in[Traits::Function::inputs];
    read_one<1>(in[1]);
    read_one<2>(in[2]);
    join(partial);
    in[3] = partial.value[1];
    in[4] = partial.value[2] / partial.value[0];
    if (block == 0 && arch::thread() == 0) {
      Real statistics[Traits::Final::outputs];
      Traits::Final::apply(params, partial.value, statistics);
      write_one<1>(statistics[0]);
      write_one<2>(statistics[1]);
    }
    using Y = typename AccessAt<0, typename Traits::Outputs>::type;
    PrimitiveTensor const& y = params.tensor[primitive_inputs];
    for (int j = 0; run_of(j) < params.terms; ++j) {
      Place const place(params.axis + policy.kept, policy.terms, run_of(j));
      typename Shared::Run const& run = shared.runs()[j * threads + arch::thread()];
      Real out[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        Real result[Traits::Function::outputs];
        in[0] = run[e];
        Traits::Function::apply(params, in, result);
        out[e] = result[0];
      }
      Y::store(y, Stretch{offset(y, place), count_of(place)}, out);
    }
    arch::cluster_wait();
  }

  template <int i>
  COSMATI_DEVICE void read_one(Real& to) const {
    using Access = typename AccessAt<i, typename Traits::Inputs>::type;
    Real one[1];
    Access::load(params, params.tensor[i], Stretch{kept.offset(params.tensor[i].stride), 1}, one);
    to = one[0];
  }
  template <int i>
  COSMATI_DEVICE void write_one(Real from) const {
    using Access = typename AccessAt<i, typename Traits::Outputs>::type;
    PrimitiveTensor const& tensor = params.tensor[primitive_inputs + i];
    Real const one[1] = {from};
    Access::store(tensor, Stretch{kept.offset(tensor.stride), 1}, one);
  }
};

// Inputs: x, scale, bias; outputs: y, and the Final's of count, mean and sum of squares: two statistics. The
// positions are the channels. Grid: positions * policy.cluster blocks.
template <class Traits>
COSMATI_CLUSTER_KERNEL(Traits::threads, 2, Traits::cluster)
channels_cluster_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  PrimitivePolicy const policy = Traits::policy(params);
  auto const number = static_cast<unsigned>(arch::block_x());
  constexpr unsigned blocks = Traits::cluster;
  ChannelKernel<Traits>{params, policy, arch::shared_storage<ChannelShared<Traits>>(),
                        static_cast<int>(number % blocks), Place(params.axis, policy.kept, number / blocks)}
      .run();
}

}  // namespace cosmati
