// A convolution's operands loaded by TMA: the image in im2col mode, whose boxes are rows of the unrolled
// matrix, and the filter in ordinary four-dimensional boxes. Results are stored in im2col mode if no single
// stride covers their pixels.
#pragma once
#include "cosmati/arch/tma_im2col.h"
#include "cosmati/conv/arguments.h"
#include "cosmati/gemm/tensor_source.h"

namespace cosmati {

// Both operands share the depth k = (r, s, channel), with channels padded to full steps, so that a step
// covers one tap; channels beyond the last are zero in both. For the filter gradient k = (image, row,
// column), and a box along n covers one tap.

// The image, by windows: x of the forward direction or dy of the data gradient, K-major, whose outer index is
// a window (image, row, column); or x of the filter gradient, MN-major, whose outer index is (r, s, channel)
// and whose depth is a window. The map's box is several windows by 128 bytes of channels; windows advance
// like the product's pixels.
struct ImageArguments : TensorArguments {
  DigitExtents pixels, taps;
  int last_tap = 0;                    // the last value of (r, s, channel)
  int top = 0, left = 0;               // the corner of the first window
  int down = 1, right = 1;             // distance between windows
  int first_down = 0, tap_down = 1;    // rows from the corner to tap r: first_down + r * tap_down, not
                                       // negative
  int first_right = 0, tap_right = 1;  // likewise for columns
};

// w(line, r, s, element): contiguous elements are channels of the depth or, if `along` is outer, of the
// result.
struct FilterArguments : TensorArguments {
  DigitExtents depth;
};

// A box of windows for one tap.
struct WindowPlace {
  int window, image, row, column;
  COSMATI_DEVICE WindowPlace(ImageArguments const& all, int first_window) : window(first_window) {
    Digits const at = all.pixels.digits(first_window);
    image = at.first, row = all.top + at.middle * all.down, column = all.left + at.last * all.right;
  }
  // To the blocks of the mask if `many`, otherwise to this block.
  template <bool many>
  COSMATI_DEVICE void copy(ImageArguments const& all, Digits const& tap, int neighbor, void* to,
                           arch::Barrier& barrier, unsigned short blocks) const {
    int const at[4] = {tap.last + neighbor, column, row, image};
    int const offset[2] = {all.first_right + tap.middle * all.tap_right,
                           all.first_down + tap.first * all.tap_down};
    if constexpr (many)
      arch::copy_windows_to_blocks(to, all.map, barrier, at, offset, blocks);
    else
      arch::copy_windows(to, all.map, barrier, at, offset);
  }
};

// The windows of a tile, which the blocks of a cluster with the same windows load for one another.
struct WindowBoxes {
  ImageArguments const& arguments;
  WindowPlace place;  // of the first window
  Digits tap;
  template <Along along, bool many>
  COSMATI_DEVICE void copy(void* to, arch::Barrier& barrier, int neighbor, int line,
                           unsigned short blocks) const {
    static_assert(along == Along::k, "windows of a tile are its rows");
    if constexpr (many)
      WindowPlace(arguments, place.window + line).copy<true>(arguments, tap, neighbor, to, barrier, blocks);
    else
      place.copy<false>(arguments, tap, neighbor, to, barrier, blocks);
  }
};

struct TapBoxes {
  ImageArguments const& arguments;
  WindowPlace place;
  int first_outer;
  template <Along along, bool many>
  COSMATI_DEVICE void copy(void* to, arch::Barrier& barrier, int neighbor, int, unsigned short blocks) const {
    static_assert(along == Along::mn && !many,
                  "each block loads its own windows of the image: cluster_m must be 1");
    // Beyond n any tap is loaded, since the results are not stored; boxes begin at multiples of 16 bytes.
    int const tap = first_outer + neighbor;
    place.copy<false>(arguments, arguments.taps.digits(tap <= arguments.last_tap ? tap : 0), 0, to, barrier,
                      blocks);
  }
};

template <class Element_, Along along_ = Along::k>
struct ImageSource {
  using Element = Element_;
  using Arguments = ImageArguments;
  static constexpr Along along = Along::k;

  struct Lines {
    Arguments const& arguments;
    WindowPlace place;
    COSMATI_DEVICE Lines(Arguments const& all, arch::TensorMap const&, int first_outer, Index)
        : arguments(all), place(all, first_outer) {}
    COSMATI_DEVICE WindowBoxes step(int first_depth) const {
      return {arguments, place, arguments.taps.digits(first_depth)};
    }
  };
};

template <class Element_>
struct ImageSource<Element_, Along::mn> {
  using Element = Element_;
  using Arguments = ImageArguments;
  static constexpr Along along = Along::mn;

  struct Lines {
    Arguments const& arguments;
    int first_outer;
    COSMATI_DEVICE Lines(Arguments const& all, arch::TensorMap const&, int first, Index)
        : arguments(all), first_outer(first) {}
    COSMATI_DEVICE TapBoxes step(int first_depth) const {
      return {arguments, WindowPlace(arguments, first_depth), first_outer};
    }
  };
};

// D(pixel, channel) with pixels at any multiples of 16 bytes along columns, rows and images, like those of a
// phase of a data gradient: a pixel is a window of one element, and boxes of pixels advance along rows, then
// images.
struct PixelCoordinates {
  DigitExtents pixels;
};
struct ResultArguments {
  static constexpr bool made_by_kernels = false;
  arch::TensorMap map;
  DigitExtents pixels;
  COSMATI_DEVICE void prefetch() const { arch::prefetch(map); }
  COSMATI_DEVICE arch::TensorMap const& of(Index) const { return map; }
  COSMATI_DEVICE PixelCoordinates coordinates(Index) const { return {pixels}; }
};
template <Along along>
COSMATI_DEVICE void store_box(arch::TensorMap const& map, void const* shared, PixelCoordinates const& of,
                              int m, int n) {
  static_assert(along == Along::k, "the channels of a pixel are contiguous");
  Digits const pixel = of.pixels.digits(m);
  int const to[4] = {n, pixel.last, pixel.middle, pixel.first};
  arch::store_windows(map, shared, to);
}

// dw(filter, tap, channel) of a product whose columns are the channels of one tap after another, padded to
// full steps: a box has channels of one tap, and those that do not exist are not stored.
struct TapCoordinates {
  Divisor channels;
};
struct TapArguments {
  static constexpr bool made_by_kernels = false;
  arch::TensorMap map;
  Divisor channels;  // of a tap, with padding
  COSMATI_DEVICE void prefetch() const { arch::prefetch(map); }
  COSMATI_DEVICE arch::TensorMap const& of(Index) const { return map; }
  COSMATI_DEVICE TapCoordinates coordinates(Index) const { return {channels}; }
};
template <Along along>
COSMATI_DEVICE void store_box(arch::TensorMap const& map, void const* shared, TapCoordinates const& of, int m,
                              int n) {
  static_assert(along == Along::k, "the channels of a tap are contiguous");
  int const tap = of.channels.quotient(n), to[3] = {n - tap * of.channels.divisor, m, tap};
  arch::store_tile(map, shared, to);
}

struct FilterBoxes {
  arch::TensorMap const& map;
  int first_outer;
  Digits tap;
  template <Along along, bool many>
  COSMATI_DEVICE void copy(void* to, arch::Barrier& barrier, int neighbor, int line,
                           unsigned short blocks) const {
    int const at[4] = {(along == Along::k ? tap.last : first_outer) + neighbor, tap.middle, tap.first,
                       (along == Along::k ? first_outer : tap.last) + line};
    copy_box<many>(to, map, barrier, at, blocks);
  }
};

template <class Element_, Along along_>
struct FilterSource {
  using Element = Element_;
  using Arguments = FilterArguments;
  static constexpr Along along = along_;

  struct Lines {
    Arguments const& arguments;
    int first_outer;
    COSMATI_DEVICE Lines(Arguments const& all, arch::TensorMap const&, int first, Index)
        : arguments(all), first_outer(first) {}
    COSMATI_DEVICE FilterBoxes step(int first_depth) const {
      return {arguments.map, first_outer, arguments.depth.digits(first_depth)};
    }
  };
};

}  // namespace cosmati
