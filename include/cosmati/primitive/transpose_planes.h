// y = x between images whose planes are contiguous (NCHW) and images whose channels are (NHWC), for planes
// that begin anywhere within 16 bytes: the planes of adjacent channels are one stretch of memory, which a
// block copies to or from shared memory by 16 bytes, as it does the channels of each pixel. The names are
// those of images; a plane is what is contiguous on the side without aligned runs.
#pragma once
#include "cosmati/primitive/contiguous_copy.h"

namespace cosmati {

// The axes: groups of `channels` channels, then the others. `classes`: channels; run_extent: pixels of a
// plane; window[0].tap_step: elements between the pixels of the image with contiguous channels, whose runs
// are aligned.
template <class Traits>
struct PlaneTransposition {
  using Real = typename Traits::Real;
  using X = typename AccessAt<0, typename Traits::Inputs>::type;
  using Y = typename AccessAt<0, typename Traits::Outputs>::type;
  static constexpr bool to_planes = Traits::window.runs_of_columns;
  static constexpr int width = Traits::width, threads = Traits::threads, channels = Traits::window.columns;
  // Adjacent lanes have as many adjacent runs of a pixel as shared memory can access without bank conflicts.
  static constexpr int lanes = Traits::along, across = threads / lanes, turns = channels / (width * lanes);
  // Pixels of a thread whose runs are in flight.
  static constexpr int ahead = turns >= Traits::unroll ? 1 : Traits::unroll / turns;
  using Element = typename X::Element;
  using FromPlanes = ContiguousCopy<X, width, threads, Traits::bulk>;
  using ToPlanes = ContiguousCopy<Y, width, threads, Traits::bulk>;

  PrimitiveParameters const& params;
  Index const from, to;  // offsets of the first channel in x and y
  int const own;         // channels of the block
  Element* const plane;  // in shared memory

  // Calls each(turn, channel, pixel, count) for this thread's runs of the pixels first, first + across, ...
  template <class Each>
  COSMATI_DEVICE void for_runs(int first, Each const& each) const {
    bool const whole = Traits::policy(params).whole;
    auto const pixels = static_cast<int>(params.run_extent);
    COSMATI_UNROLL
    for (int a = 0; a < ahead; ++a) {
      COSMATI_UNROLL
      for (int t = 0; t < turns; ++t) {
        int const pixel = first + a * across, channel = (t * lanes + arch::thread() % lanes) * width;
        if (pixel < pixels && channel < own)
          each(a * turns + t, channel, pixel, whole || own - channel >= width ? width : own - channel);
      }
    }
  }
  COSMATI_DEVICE Index offset_of(int channel, int pixel) const {
    return pixel * params.window[0].tap_step + channel;
  }
  // The element of a channel in shared memory.
  COSMATI_DEVICE Element& at(int channel, int pixel) const {
    return plane[channel * static_cast<int>(params.run_extent) + pixel];
  }
  template <class Each>
  COSMATI_DEVICE void for_pixels(Each const& each) const {
    COSMATI_NO_UNROLL
    for (int p = arch::thread() / lanes; p < params.run_extent; p += ahead * across) each(p);
  }

  COSMATI_DEVICE void scatter() const {
    for_pixels([&](int first) {
      typename X::template Raw<width> raw[ahead * turns];
      for_runs(first, [&](int i, int channel, int pixel, int count) {
        X::template fetch<width>(params, params.tensor[0],
                                 ContiguousRange{from + offset_of(channel, pixel), count}, raw[i]);
      });
      for_runs(first, [&](int i, int channel, int pixel, int) {
        Real run[width];
        X::unpack(params, raw[i], run);
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) at(channel + e, pixel) = run[e];
      });
    });
  }
  COSMATI_DEVICE void gather() const {
    for_pixels([&](int first) {
      for_runs(first, [&](int, int channel, int pixel, int count) {
        Real run[width];
        COSMATI_UNROLL
        for (int e = 0; e < width; ++e) run[e] = at(channel + e, pixel);
        Y::store(params.tensor[primitive_inputs], ContiguousRange{to + offset_of(channel, pixel), count},
                 run);
      });
    });
  }
};

// Grid: positions blocks.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1024 / Traits::threads)
transpose_plane_tile_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  using Planes = PlaneTransposition<Traits>;
  using Run = typename Planes::FromPlanes::Run;
  constexpr int width = Planes::width;
  Place const place(params.axis, Traits::policy(params).kept, static_cast<unsigned>(arch::block_x()));
  PrimitiveTensor const &x = params.tensor[0], &y = params.tensor[primitive_inputs];
  Index const from = place.offset(x.stride), to = place.offset(y.stride);
  int const left = params.classes - static_cast<int>(place.at[0]) * Planes::channels,
            own = left < Planes::channels ? left : Planes::channels,
            count = own * static_cast<int>(params.run_extent);
  auto const start = static_cast<int>((Planes::to_planes ? to : from) & (width - 1));
  Run* const shared = &arch::shared_storage<Run>();
  Planes const planes{params, from, to, own, reinterpret_cast<typename Planes::Element*>(shared) + start};
  if constexpr (Planes::to_planes) {
    planes.scatter();
    Planes::ToPlanes::publish();
    arch::block_barrier();
    Planes::ToPlanes::template store<typename Planes::Real>(y, to, planes.plane, count);
  } else {
    int const runs = Planes::channels * static_cast<int>(params.run_extent) / width + 2;
    Planes::FromPlanes::load(x, from - start, start + count, shared,
                             reinterpret_cast<arch::Barrier*>(shared + runs));
    planes.gather();
  }
}

}  // namespace cosmati
