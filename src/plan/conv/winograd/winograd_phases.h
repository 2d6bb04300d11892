// The geometry of Winograd's convolution with tiles of 2x2 outputs on the processor, whose tiles serve all
// phases of a strided data gradient.
#pragma once
#include <algorithm>

#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

// One spatial dimension. Phase f of a data gradient with stride s, dx[s*v + f - pad], is the sum over j of
// dy[v - j] * w[f + s*j]: a convolution without stride, with some of the taps. Tile t computes the outputs
// u = first + 2t and u + 1 of every phase from the same four inputs, where v = u - shift(f): phases with
// fewer than three taps are shifted so that all begin at the same u, if possible. A forward convolution has
// one phase, and u is its output.
class WinogradAxis {
 public:
  static constexpr Index tile = 2, most_taps = 3;

  bool of_data;  // a data gradient
  Index stride;  // number of phases
  Index taps, pad;
  Index inputs, outputs;
  Index first, tiles;

  WinogradAxis(ConvolutionProblem const& problem, int i)
      : of_data(problem.direction == ConvolutionDirection::data),
        stride(of_data ? problem.stride[i] : 1),
        taps(problem.w.extent(2 + i)),
        pad(problem.pad_begin[i]),
        inputs((of_data ? problem.y : problem.x).extent(2 + i)),
        outputs((of_data ? problem.x : problem.y).extent(2 + i)),
        first(of_data ? start(0) + shift(0) : 0) {
    Index last = first;
    for (Index phase = 0; phase < stride; ++phase) {
      first = std::min(first, of_data ? start(phase) + shift(phase) : 0);
      last = std::max(last,
                      of_data ? floor_divide(outputs - 1 + pad - phase, stride) + shift(phase) : outputs - 1);
    }
    tiles = (last - first) / tile + 1;
  }

  // The output u of a phase; outside [0, outputs), there is none.
  Index output(Index phase, Index u) const { return of_data ? stride * (u - shift(phase)) + phase - pad : u; }
  // The first of the four inputs of the tile whose first output is u; inputs outside [0, inputs) are 0.
  Index input(Index u) const { return of_data ? u - (most_taps - 1) : u - pad; }
  // The tap of a phase that is multiplied with input 0, 1 or 2 for the output u; -1: none.
  Index tap(Index phase, int at) const {
    if (!of_data) return at < taps ? at : -1;
    Index const j = most_taps - 1 - shift(phase) - at;
    return j >= 0 && j < taps_of(phase) ? phase + stride * j : -1;
  }
  Index taps_of(Index phase) const {
    return of_data ? std::max<Index>((taps - phase + stride - 1) / stride, 0) : taps;
  }
  // Whether the products of position 0..3 of a transformed tile can be other than 0.
  bool multiplies(Index phase, int position) const {
    if (position == 0) return tap(phase, 0) >= 0;
    if (position == 3) return tap(phase, 2) >= 0;
    return taps_of(phase) > 0;
  }

 private:
  static Index floor_divide(Index a, Index b) { return (a >= 0 ? a : a - b + 1) / b; }
  // The smallest v of a phase.
  Index start(Index phase) const { return floor_divide(pad - phase + stride - 1, stride); }
  Index shift(Index phase) const {
    if (!of_data) return 0;
    return std::clamp<Index>(start(0) - start(phase), 0, std::max<Index>(most_taps - taps_of(phase), 0));
  }
};

}  // namespace cosmati::plan
