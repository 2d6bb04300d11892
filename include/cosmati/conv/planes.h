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

// Loads the first `images` images and `channels` channels, rows starting at `top` and columns starting at
// `left`, where they exist. The lanes of a warp read contiguous elements; each thread has four loads in
// flight.
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
  int const step = threads >> schedule.log2_lanes;
  for (int at = lane; at < width; at += lanes) {
    int const of_line = last ? schedule.channels.quotient(at) : at;
    int const channel = last ? at - of_line * schedule.channels.divisor : 0;
    Element const* const from = source.data + (first_column + of_line) * source.column;
    int const column = first_column + of_line - left;
    for (int line = arch::thread() >> schedule.log2_lanes; line < lines; line += batch * step) {
      Sum value[batch];
      int place[batch];
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u) {
        int const own = line + u * step, plane = schedule.loaded_rows.quotient(own);
        int const row = first_row + own - plane * schedule.loaded_rows.divisor;
        int const n = last ? plane : schedule.channels.quotient(plane);
        int const c = last ? channel : plane - n * schedule.channels.divisor;
        place[u] = -1;
        value[u] = Sum{};
        if (own < lines && row < end_row && c < channels) {
          place[u] = n * schedule.image_pitch + c * schedule.channel_pitch +
                     (row - top) * schedule.row_pitch + column;
          value[u] = arch::number_cast<Sum>(
              arch::load_constant<Element>(from + n * source.image + c * source.channel + row * source.row));
        }
      }
      COSMATI_UNROLL
      for (int u = 0; u < batch; ++u)
        if (place[u] >= 0) to[place[u]] = value[u];
    }
  }
}

}  // namespace cosmati
