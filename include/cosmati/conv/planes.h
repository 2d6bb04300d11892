// Parts of images in shared memory, (image, channel, row, column): data that a block of a sliding kernel
// reads repeatedly are loaded once and converted to the accumulator type.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/sliding.h"

namespace cosmati {

// The images of one group in global memory; strides in elements.
template <class Element>
struct PlaneSource {
  Element const* data;
  Index image, channel, row, column;
  int rows, columns;  // existing rows and columns
};

// Sets `values` values starting at `to` to zero, in 16-byte runs; `values` is a multiple of a run.
template <int threads, class Sum>
COSMATI_DEVICE void fill_planes(Sum* to, int values) {
  constexpr int run = 16 / static_cast<int>(sizeof(Sum));
  for (int i = arch::thread() * run; i < values; i += threads * run) arch::store(to + i, Vector<Sum, run>{});
}

// A row of a plane, of channel 0 if channels are last.
struct PlaneLine {
  int image, channel, row;
};
COSMATI_DEVICE PlaneLine plane_line(PlaneSchedule const& schedule, int first_row, int line) {
  int const plane = schedule.loaded_rows.quotient(line);
  int const image = schedule.channels_last ? plane : schedule.channels.quotient(plane);
  int const channel = schedule.channels_last ? 0 : plane - image * schedule.channels.divisor;
  return {image, channel, first_row + line - plane * schedule.loaded_rows.divisor};
}

// One warp loads the `width` elements of a line; each thread has four loads in flight. `last`: channels are
// contiguous; loads those below `channels` of each column.
template <bool last, class Element, class Sum>
COSMATI_DEVICE void load_line(PlaneSchedule const& schedule, Element const* from, Index column, int width,
                              int channels, Sum* to) {
  constexpr int lanes = 32, batch = 4;
  for (int first = arch::thread() % lanes; first < width; first += batch * lanes) {
    Sum value[batch];
    int place[batch];
    Element const* source = from + first * column;
    COSMATI_UNROLL
    for (int u = 0; u < batch; ++u) {
      int const at = first + u * lanes;
      bool exists = at < width;
      place[u] = at;
      if constexpr (last) {
        int const own = schedule.channels.quotient(at), channel = at - own * schedule.channels.divisor;
        exists = exists && channel < channels;
        place[u] = channel * schedule.channel_pitch + own;
        source = from + own * column + channel;
      }
      value[u] = Sum{};
      if (exists)
        value[u] = arch::number_cast<Sum>(arch::load_constant<Element>(source));
      else
        place[u] = -1;
      source += lanes * column;
    }
    COSMATI_UNROLL
    for (int u = 0; u < batch; ++u)
      if (place[u] >= 0) to[place[u]] = value[u];
  }
}

// Loads the first `images` images and `channels` channels, rows starting at `top` and columns starting at
// `left`, where they exist. The lanes of a warp read contiguous elements; each thread has four loads in
// flight, of one line if lines are long, else of four.
template <int threads, class Element, class Sum>
COSMATI_DEVICE void load_planes(PlaneSchedule const& schedule, PlaneSource<Element> const& source, int images,
                                int channels, int top, int left, Sum* to) {
  constexpr int batch = 4;
  bool const last = schedule.channels_last;
  int const first_row = top > 0 ? top : 0, first_column = left > 0 ? left : 0;
  int const end_row = top + schedule.rows < source.rows ? top + schedule.rows : source.rows;
  int const end_column = left + schedule.columns < source.columns ? left + schedule.columns : source.columns;
  int const width = (end_column - first_column) * (last ? schedule.channels.divisor : 1);
  int const lines = images * schedule.loaded_rows.divisor * (last ? 1 : schedule.channels.divisor);
  int const lanes = 1 << schedule.log2_lanes, lane = arch::thread() & (lanes - 1);
  int const first_line = arch::thread() >> schedule.log2_lanes, step = threads >> schedule.log2_lanes;
  Element const* const first = source.data + first_column * source.column;
  to += first_column - left;
  if (lanes == 32 && width > 2 * lanes) {
    for (int line = first_line; line < lines; line += step) {
      PlaneLine const own = plane_line(schedule, first_row, line);
      if (own.row >= end_row || own.channel >= channels) continue;
      Element const* const from =
          first + own.image * source.image + own.channel * source.channel + own.row * source.row;
      Sum* const place = to + own.image * schedule.image_pitch + own.channel * schedule.channel_pitch +
                         (own.row - top) * schedule.row_pitch;
      if (last)
        load_line<true>(schedule, from, source.column, width, channels, place);
      else
        load_line<false>(schedule, from, source.column, width, channels, place);
    }
    return;
  }
  for (int at = lane; at < width; at += lanes) {
    int const column = last ? schedule.channels.quotient(at) : at;
    int const channel = last ? at - column * schedule.channels.divisor : 0;
    Element const* const from = first + column * source.column;
    for (int line = first_line; line < lines; line += batch * step) {
      Sum value[batch];
      int place[batch];
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u) {
        PlaneLine const own = plane_line(schedule, first_row, line + u * step);
        int const c = own.channel + channel;
        place[u] = -1;
        value[u] = Sum{};
        if (line + u * step < lines && own.row < end_row && c < channels) {
          place[u] = own.image * schedule.image_pitch + c * schedule.channel_pitch +
                     (own.row - top) * schedule.row_pitch + column;
          value[u] = arch::number_cast<Sum>(arch::load_constant<Element>(
              from + own.image * source.image + c * source.channel + own.row * source.row));
        }
      }
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u)
        if (place[u] >= 0) to[place[u]] = value[u];
    }
  }
}

// The same for planes whose complete rows follow each other in both memories and consist of vectors: a warp
// loads all rows of a channel, `vector` elements per load.
template <int threads, int vector, class Element, class Sum>
COSMATI_DEVICE void load_dense_planes(PlaneSchedule const& schedule, PlaneSource<Element> const& source,
                                      int images, int channels, int top, Sum* to) {
  constexpr int lanes = 32, batch = 4;
  int const rows = top + schedule.rows < source.rows ? schedule.rows : source.rows - top;
  int const count = rows * source.columns;
  for (int plane = arch::thread() / lanes; plane < images * schedule.channels.divisor;
       plane += threads / lanes) {
    int const image = schedule.channels.quotient(plane), channel = plane - image * schedule.channels.divisor;
    if (channel >= channels) continue;
    Element const* const from =
        source.data + image * source.image + channel * source.channel + top * source.row;
    Sum* const place = to + image * schedule.image_pitch + channel * schedule.channel_pitch;
    for (int first = arch::thread() % lanes * vector; first < count; first += batch * lanes * vector) {
      Vector<Element, vector> loaded[batch];
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u)
        if (first + u * lanes * vector < count)
          loaded[u] = arch::load_constant<Vector<Element, vector>>(from + first + u * lanes * vector);
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u) {
        if (first + u * lanes * vector >= count) break;
        Vector<Sum, vector> value;
        COSMATI_UNROLL
        for (int v = 0; v < vector; ++v) value[v] = arch::number_cast<Sum>(loaded[u][v]);
        arch::store(place + first + u * lanes * vector, value);
      }
    }
  }
}

}  // namespace cosmati
