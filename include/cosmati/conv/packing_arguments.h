// Launch parameters of the kernel that packs an image or a filter for TMA, and of the one that unpacks the
// filter gradient.
#pragma once
#include "cosmati/core/divisor.h"
#include "cosmati/core/shape.h"

namespace cosmati {

// With place = (image, row, column), u < runs * width and width elements in 16 bytes, to[place][u] =
//   channel u % channels of from[image] at row top + row * row_step + u / channels, column left + column,
// and zero if that element does not exist or u >= rows_of_place * channels. Filters are images whose pixels
// are taps.
struct PackParameters {
  void const* from = nullptr;
  void* to = nullptr;
  Index image_stride = 0, channel_stride = 0, row_stride = 0, column_stride = 0;  // of `from`
  Divisor channels;
  int height = 1, width = 1;  // of `from`
  int top = 0, left = 0, row_step = 1, rows_of_place = 1;
  Divisor rows, columns;  // of `to`
  int places = 0, runs = 1;
};

// The inverse for the filter gradient of such an image: to[k, c, r, s], in the strides of `to`, =
//   from[k * filter + r / rows_of_place * row + s * column + r % rows_of_place * channels + c].
struct UnpackParameters {
  void const* from = nullptr;
  void* to = nullptr;
  Index filter = 0, row = 0, column = 0;
  Index filter_stride = 0, channel_stride = 0, row_stride = 0, column_stride = 0;
  Divisor channels, columns, rows, rows_of_place;
  int elements = 0;
};

inline constexpr int pack_threads = 128;
inline constexpr int pack_runs_of_thread = 2;  // 16-byte runs per thread: one sector

}  // namespace cosmati
