// Batch normalization with the statistics of its own input: y = f(x, scale, bias, mean, variance), where mean
// and variance are over all x of a channel. A cluster of blocks keeps a channel in shared memory: x is read
// once, and the next channel is loaded while this one is written.
#pragma once
#include "cosmati/arch/barrier.h"
#include "cosmati/arch/cluster.h"
#include "cosmati/core/cluster.h"
#include "cosmati/primitive/reduce.h"

namespace cosmati {

// This is followed in shared memory by as many runs as the launch has room for: (run of a thread, thread). A
// thread accesses only its own runs.
template <class Traits>
struct alignas(16) ChannelShared {
  using Run = typename AccessAt<0, typename Traits::Inputs>::type::template Run<Traits::width>;
  // For channels of even and odd numbers: a block may send its moments of the next channel before another
  // one has received all moments of this one.
  arch::Barrier received[2];
  // count, mean, sum of squared differences
  typename Traits::Real of_block[2][max_cluster_blocks][3], of_warp[Traits::threads / 32][3];

  COSMATI_DEVICE Run* runs() { return reinterpret_cast<Run*>(this + 1); }
};

template <class Traits>
struct ChannelKernel {
  using Real = typename Traits::Real;
  using Shared = ChannelShared<Traits>;
  static constexpr int width = Traits::width, unroll = Traits::unroll, threads = Traits::threads;
  using X = typename AccessAt<0, typename Traits::Inputs>::type;
  using Y = typename AccessAt<0, typename Traits::Outputs>::type;

  PrimitiveParameters const& params;
  PrimitivePolicy const policy;
  Shared& shared;
  int const block;  // rank in the cluster

  // Run i of this thread is run (i * cluster + block) * threads + thread of the channel.
  COSMATI_DEVICE unsigned run_of(int i) const {
    return static_cast<unsigned>((i * policy.cluster + block) * threads + arch::thread());
  }
  COSMATI_DEVICE bool has(int i) const { return run_of(i) < params.terms; }
  COSMATI_DEVICE typename Shared::Run& slot(int i) const {
    return shared.runs()[i * threads + arch::thread()];
  }
  COSMATI_DEVICE Place place_of(int i) const {
    return Place(params.axis + policy.kept, policy.terms, run_of(i));
  }
  COSMATI_DEVICE int count_of(Place const& place) const {
    return policy.whole ? width : run_count<width>(params.run_extent, place.at[0]);
  }
  COSMATI_DEVICE Place channel_at(unsigned channel) const { return Place(params.axis, policy.kept, channel); }
  COSMATI_DEVICE static Index offset(PrimitiveTensor const& tensor, int axes, Place const& channel,
                                     Place const& place) {
    return channel.offset(tensor.stride) + place.offset(tensor.stride + axes);
  }

  COSMATI_DEVICE void copy(Place const& channel, Place const& place, int i) const {
    X::copy(slot(i), params.tensor[0],
            ContiguousRange{offset(params.tensor[0], policy.kept, channel, place), count_of(place)});
  }

  // Returns the moments of this thread's runs.
  COSMATI_DEVICE Partial<Real, 3> moments() const {
    Partial<Real, 3> partial;
    partial.clear(static_cast<int>(Combine::moments));
    for (int first = 0; has(first); first += unroll) {
      Real value[unroll][width];
      int counts[unroll];
      COSMATI_UNROLL
      for (int u = 0; u < unroll; ++u) {
        counts[u] = has(first + u) ? count_of(place_of(first + u)) : 0;
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) value[u][e] = Real(0);
        if (counts[u] > 0) X::unpack(slot(first + u), value[u]);
      }
      if (policy.whole && counts[unroll - 1] > 0)
        add_all(value, partial);
      else
        add_some(value, counts, partial);
    }
    return partial;
  }

  // Adds complete runs with several independent sums, since dependent additions have latency.
  COSMATI_DEVICE static void add_all(Real const (&value)[unroll][width], Partial<Real, 3>& partial) {
    constexpr int count = unroll * width;
    Real sums[width] = {}, squares[width] = {};
    COSMATI_UNROLL
    for (int u = 0; u < unroll; ++u) {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) sums[e] += value[u][e];
    }
    Real const mean = sum_of(sums) * (Real(1) / Real(count));
    COSMATI_UNROLL
    for (int u = 0; u < unroll; ++u) {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        Real const difference = value[u][e] - mean;
        squares[e] += difference * difference;
      }
    }
    partial.join_moments(Real(count), mean, sum_of(squares));
  }
  COSMATI_DEVICE static void add_some(Real const (&value)[unroll][width], int const (&counts)[unroll],
                                      Partial<Real, 3>& partial) {
    bool there[unroll * width];
    Real term[unroll * width][1];
    COSMATI_UNROLL
    for (int u = 0; u < unroll; ++u) {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) {
        term[u * width + e][0] = value[u][e];
        there[u * width + e] = e < counts[u];
      }
    }
    absorb(partial, static_cast<int>(Combine::moments), there, term);
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

  // Combines `count` partial results. Computing the mean of all first, it needs only one division.
  template <int maximum, class At>
  COSMATI_DEVICE static Partial<Real, 3> joined(int count, At const& at) {
    Real part[maximum][3];
    Partial<Real, 3> all;
    all.clear(static_cast<int>(Combine::moments));
    Real sum = 0;
    COSMATI_UNROLL
    for (int i = 0; i < maximum; ++i) {
      COSMATI_UNROLL
      for (int v = 0; v < 3; ++v) part[i][v] = i < count ? at(i)[v] : Real(0);
    }
    COSMATI_UNROLL
    for (int i = 0; i < maximum; ++i) {
      all.value[0] += part[i][0];
      sum += part[i][0] * part[i][1];
    }
    all.value[1] = all.value[0] > Real(0) ? sum / all.value[0] : Real(0);
    COSMATI_UNROLL
    for (int i = 0; i < maximum; ++i) {
      Real const difference = part[i][1] - all.value[1];
      all.value[2] += part[i][2] + part[i][0] * difference * difference;
    }
    return all;
  }

  // Called before the first join().
  COSMATI_DEVICE void start() const {
    if (arch::thread() == 0) {
      arch::init(shared.received[0], 1);
      arch::init(shared.received[1], 1);
      arch::publish_barriers();
    }
    arch::cluster_arrive_relaxed();
  }

  // Combines in a fixed order, in every thread: lanes, then warps, then blocks, which send their moments to
  // each other. `number`: how many channels this block has joined before.
  COSMATI_DEVICE void join(Partial<Real, 3>& partial, int number) const {
    Real const(&own)[3] = partial.value;
    Real const count = sum_of_lanes(own[0]), sum = sum_of_lanes(own[0] * own[1]);
    Real const mean = count > Real(0) ? sum / count : Real(0), difference = own[1] - mean;
    Real const squares = sum_of_lanes(own[2] + own[0] * difference * difference);
    int const lane = arch::thread(), side = number % 2;
    if (lane % 32 == 0) {
      Real(&of_warp)[3] = shared.of_warp[lane / 32];
      of_warp[0] = count;
      of_warp[1] = mean;
      of_warp[2] = squares;
    }
    arch::block_barrier();
    if (number == 0) arch::cluster_wait();
    if (lane < 32) {
      // Lanes that send nothing may read the next channel's values, and do not use them.
      partial = joined<threads / 32>(threads / 32, [&](int i) { return shared.of_warp[i]; });
      if (lane == 0)
        arch::arrive_expecting(shared.received[side], policy.cluster * 3 * static_cast<int>(sizeof(Real)));
      if (lane < 3 * policy.cluster)
        arch::send(shared.of_block[side][block][lane % 3],
                   lane % 3 == 0   ? partial.value[0]
                   : lane % 3 == 1 ? partial.value[1]
                                   : partial.value[2],
                   shared.received[side], lane / 3);
    }
    arch::acquire(shared.received[side], number / 2 % 2);
    partial = joined<max_cluster_blocks>(policy.cluster, [&](int i) { return shared.of_block[side][i]; });
  }

  // Processes channels first, first + step, ... of the parameters' positions.
  COSMATI_DEVICE void run(unsigned first, unsigned step) const {
    if (first >= params.positions) return;
    start();
    int joined_before = 0;
    Place channel = channel_at(first);
    for (int i = 0; has(i); ++i) copy(channel, place_of(i), i);
    arch::commit_copies();
    for (unsigned number = first; number < params.positions; number += step) {
      Real in[Traits::Function::inputs];
      read_one<1>(channel, in[1]);
      read_one<2>(channel, in[2]);
      arch::wait_copies<0>();
      Partial<Real, 3> partial = moments();
      join(partial, joined_before++);
      in[3] = partial.value[1];
      in[4] = partial.value[2] / partial.value[0];
      if (block == 0 && arch::thread() == 0) {
        Real statistics[Traits::Final::outputs];
        Traits::Final::apply(params, partial.value, statistics);
        write_one<1>(channel, statistics[0]);
        write_one<2>(channel, statistics[1]);
      }
      bool const goes_on = number + step < params.positions;
      Place const next = channel_at(goes_on ? number + step : number);
      for (int i = 0; has(i); ++i) {
        Place const place = place_of(i);
        write(channel, place, i, in);
        if (goes_on) copy(next, place, i);
      }
      arch::commit_copies();
      channel = next;
    }
  }

  COSMATI_DEVICE void write(Place const& channel, Place const& place, int i,
                            Real (&in)[Traits::Function::inputs]) const {
    PrimitiveTensor const& y = params.tensor[primitive_inputs];
    Real out[width];
    X::unpack(slot(i), out);
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) {
      Real result[Traits::Function::outputs];
      in[0] = out[e];
      Traits::Function::apply(params, in, result);
      out[e] = result[0];
    }
    Y::store(y, ContiguousRange{offset(y, policy.kept, channel, place), count_of(place)}, out);
  }

  template <int i>
  COSMATI_DEVICE void read_one(Place const& channel, Real& to) const {
    using Access = typename AccessAt<i, typename Traits::Inputs>::type;
    Real one[1];
    Access::load(params, params.tensor[i], ContiguousRange{channel.offset(params.tensor[i].stride), 1}, one);
    to = one[0];
  }
  template <int i>
  COSMATI_DEVICE void write_one(Place const& channel, Real from) const {
    using Access = typename AccessAt<i, typename Traits::Outputs>::type;
    PrimitiveTensor const& tensor = params.tensor[primitive_inputs + i];
    Real const one[1] = {from};
    Access::store(tensor, ContiguousRange{channel.offset(tensor.stride), 1}, one);
  }
};

// Inputs: x, scale, bias; outputs: y, and the two statistics that Final computes from count, mean and sum of
// squares. The positions are the channels. Grid: as many clusters of policy.cluster blocks as can be
// resident.
template <class Traits>
COSMATI_CLUSTER_KERNEL(Traits::threads, Traits::threads > 256 ? 1 : 2, Traits::cluster)
channels_cluster_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  PrimitivePolicy const policy = Traits::policy(params);
  auto const number = static_cast<unsigned>(arch::block_x());
  constexpr unsigned blocks = Traits::cluster;
  ChannelKernel<Traits>{params, policy, arch::shared_storage<ChannelShared<Traits>>(),
                        static_cast<int>(number % blocks)}
      .run(number / blocks, static_cast<unsigned>(arch::grid_x()) / blocks);
}

}  // namespace cosmati
