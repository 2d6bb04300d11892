// Convolution and its data gradient: one loop over the target, with the window's axes read in either
// direction.
#pragma once

#include "src/backend/cpu/chwn/correlate.h"

namespace cosmati::cpu::chwn {
namespace {

// The taps of a window that read existing source elements: an arithmetic progression in tap and position.
struct Taps {
  Index count;
  Index first;
  Index step;
  Index position;
  Index position_step;
};

// One axis of the loop. Forward: each output reads inputs. Backward: each input reads the outputs whose
// windows contain it.
struct WalkAxis {
  Axis window;
  bool backward;

  Index source() const { return backward ? window.output : window.input; }
  Index target() const { return backward ? window.input : window.output; }
  // Targets at this distance have the same taps, with sources at the distance source_step().
  Index phases() const { return backward ? window.stride : 1; }
  Index source_step() const { return backward ? 1 : window.stride; }

  Taps taps_at(Index at) const {
    Taps found = {0, 0, 0, 0, 0};
    for (Index tap = 0; tap < window.taps; ++tap) {
      Index position = backward ? at + window.pad_begin - tap * window.dilation
                                : at * window.stride + tap * window.dilation - window.pad_begin;
      if (backward && window.stride > 1) {
        if (position % window.stride != 0) continue;
        position /= window.stride;
      }
      if (position < 0 || position >= source()) continue;
      if (found.count == 0) {
        found.first = tap;
        found.position = position;
      } else if (found.count == 1) {
        found.step = tap - found.first;
        found.position_step = position - found.position;
      }
      ++found.count;
    }
    return found;
  }
};

inline bool same_taps(Taps const& a, Taps const& b) { return a.count == b.count && a.first == b.first; }

struct Walk {
  WalkAxis rows;
  WalkAxis columns;
  Index groups;
  Index source_channels;  // per group
  Index target_channels;
  Index weight_source;  // floats between the weights of adjacent source channels
  Index weight_target;
  Index weight_group;
  bool relu;

  Index source_plane() const { return rows.source() * columns.source() * images; }
  Index target_plane() const { return rows.target() * columns.target() * images; }
};

// Pointers for one group and one vector of images.
struct WalkMemory {
  float const* source;
  float const* weights;
  float const* bias;
  float* target;
};

// Computes `count` columns starting at x, which use the same taps, over a strip of rows. A single column
// forms tiles of rows instead.
inline void walk_strip(Walk const& walk, WalkMemory const& memory, Range rows, Index x, Index count) {
  Index const source_row = walk.columns.source() * images;
  Index const target_row = walk.columns.target() * images;
  Index const weight_row = walk.columns.window.taps;
  Taps const column = walk.columns.taps_at(x);
  bool const by_rows = count == 1 && walk.rows.phases() == 1;
  for (Index y = rows.first, height = 1; y < rows.last; y += height) {
    Taps const row = walk.rows.taps_at(y);
    height = 1;
    while (by_rows && y + height < rows.last && same_taps(row, walk.rows.taps_at(y + height))) ++height;
    Correlation const sum_over = {
        {walk.source_channels, walk.source_plane(), walk.weight_source},
        {row.count, row.position_step * source_row, row.step * weight_row},
        {column.count, column.position_step * images, column.step},
        walk.weight_target,
        walk.target_plane(),
        by_rows ? walk.rows.source_step() * source_row : walk.columns.source_step() * images,
        by_rows ? target_row : walk.columns.phases() * images,
        walk.relu};
    correlate(sum_over, walk.target_channels, by_rows ? height : count,
              memory.source + row.position * source_row + column.position * images,
              memory.weights + row.first * weight_row + column.first, memory.bias,
              memory.target + y * target_row + x * images);
  }
}

// Computes all columns of a strip of rows. Columns that use the same taps share tiles; a column at the
// padding has its own, so that no product with padding is computed.
inline void walk_rows(Walk const& walk, WalkMemory const& memory, Range rows) {
  Index const target_width = walk.columns.target();
  Index const phases = walk.columns.phases();
  for (Index phase = 0; phase < phases; ++phase) {
    for (Index x = phase; x < target_width;) {
      Taps const taps = walk.columns.taps_at(x);
      Index last = x + phases;
      while (last < target_width && same_taps(taps, walk.columns.taps_at(last))) last += phases;
      for (Index left = (last - x) / phases, count = 0; left > 0; left -= count, x += count * phases) {
        count = vectors_of_tile(left, outputs_of_tile(walk.target_channels));
        walk_strip(walk, memory, rows, x, count);
      }
    }
  }
}

inline void walk_share(Walk const& walk, WalkMemory const& memory, Share share) {
  for (Run run : Runs(1, walk.rows.target(), share)) {
    for (Index group = 0; group < walk.groups; ++group)
      walk_rows(walk,
                {memory.source + group * walk.source_channels * walk.source_plane() + run.lane,
                 memory.weights + group * walk.weight_group,
                 memory.bias ? memory.bias + group * walk.target_channels : nullptr,
                 memory.target + group * walk.target_channels * walk.target_plane() + run.lane},
                run.lines);
  }
}

inline Walk walk_of(Convolution const& shape, bool backward, bool relu) {
  Index const in = shape.in_channels / shape.groups;
  Index const out = shape.out_channels / shape.groups;
  Index const area = shape.rows.taps * shape.columns.taps;
  Index const weight_in = area;
  Index const weight_out = in * area;
  return {{shape.rows, backward},
          {shape.columns, backward},
          shape.groups,
          backward ? out : in,
          backward ? in : out,
          backward ? weight_out : weight_in,
          backward ? weight_in : weight_out,
          out * weight_out,
          relu};
}

inline void convolve(Convolution const& shape, float const* x, float const* w, float const* bias, bool relu,
                     float* y, Share share) {
  walk_share(walk_of(shape, false, relu), {x, w, bias, y}, share);
}

inline void convolve_data(Convolution const& shape, float const* dy, float const* w, float* dx, Share share) {
  walk_share(walk_of(shape, true, false), {dy, w, nullptr, dx}, share);
}

}  // namespace
}  // namespace cosmati::cpu::chwn
