// Convolution and pooling of 16 images that are contiguous: tensors (c, h, w, 16), which is CHWN with N = 16.
// Every inner loop is over images, so no number of channels needs padding. Each function computes one share
// of the work and never allocates. kernels.cpp is compiled once per instruction set, each time into a
// separate table.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati::cpu::chwn {

inline constexpr Index images = 16;

// One of `count` nearly equal parts of the work.
struct Share {
  Index number;
  Index count;
};

// One axis of a sliding window: position = output * stride + tap * dilation - pad_begin.
struct Axis {
  Index input;
  Index output;
  Index taps;
  Index stride;
  Index dilation;
  Index pad_begin;
  Index pad_end;
};

// Weights (out_channels, in_channels / groups, rows.taps, columns.taps), dense.
struct Convolution {
  Index in_channels;
  Index out_channels;
  Index groups;
  Axis rows;
  Axis columns;
  // Number of elements of x and dy that stay in the L2 cache while the filter gradient reads them once for
  // each of its tiles.
  Index chunk_floats = 96 * 1024;
};

struct Pooling {
  Index channels;
  Axis rows;
  Axis columns;
};

// How the position of a maximum is stored, per output element: its tap r*S + s, or its position h*W + w in
// the image plane. At most one of them is not null.
template <class Byte, class Integer>
struct Marks {
  Byte* taps;
  Integer* places;
};

struct Kernels {
  // y = sum + bias (unless null); with relu, negative values become 0. The result does not depend on the
  // number of shares.
  void (*convolve)(Convolution const&, float const* x, float const* w, float const* bias, bool relu, float* y,
                   Share);
  void (*convolve_data)(Convolution const&, float const* dy, float const* w, float* dx, Share);
  // Sets dw and db (unless null) to the sums over this share of the images' rows.
  void (*convolve_filter)(Convolution const&, float const* x, float const* dy, float* dw, float* db, Share);

  // y may be null.
  void (*max_pool)(Pooling const&, float const* x, float* y, Marks<unsigned char, int> marks, Share);
  void (*max_unpool)(Pooling const&, float const* dy, Marks<unsigned char const, int const> marks, float* dx,
                     Share);
  void (*average_pool)(Pooling const&, bool with_padding, float const* x, float* y, Share);
  void (*average_unpool)(Pooling const&, bool with_padding, float const* dy, float* dx, Share);
};

extern Kernels const kernels_v3;  // x86-64-v3: AVX2 and FMA
extern Kernels const kernels_v4;  // x86-64-v4: AVX-512

}  // namespace cosmati::cpu::chwn
