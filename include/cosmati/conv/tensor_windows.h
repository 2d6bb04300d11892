// A convolution's operands by the tensor copy engine (TMA): the image by the engine's im2col mode, whose
// boxes are rows of the matrix that unrolling would write, and the filter by ordinary boxes of its four
// dimensions.
#pragma once
#include "cosmati/arch/window_copy.h"
#include "cosmati/conv/arguments.h"
#include "cosmati/gemm/tensor_source.h"

namespace cosmati {

// Both operands walk one depth: k = (r, s, channel), channels padded to whole steps, so that a step has one
// tap. Channels beyond the last are zeros in both.

// x of the forward pass, dy of the data gradient: outer is a window, (image, row, column). Encoded with boxes
// of the tile's rows by 128 bytes of channels; windows step as the product's pixels do.
struct ImageArguments : TensorArguments {
  DigitExtents outer, depth;
  int top = 0, left = 0;               // the first window's corner
  int down = 1, right = 1;             // from window to window
  int first_down = 0, tap_down = 1;    // a tap's distance from the corner, not negative:
  int first_right = 0, tap_right = 1;  // first + tap * step
};

// w(line, r, s, neighbour): neighbours are channels of the depth, or where `along` is outer, of the result.
struct FilterArguments : TensorArguments {
  DigitExtents depth;
};

struct WindowBoxes {
  arch::TensorMap const& map;
  int channel, column, row, image, right, down;
  template <Along along, bool many>
  COSMATI_DEVICE void copy(void* to, arch::Barrier& barrier, int neighbour, int, unsigned short) const {
    static_assert(along == Along::depth && !many,
                  "the windows of an image are a tile of its own for each block: cluster_n = 1");
    int const at[4] = {channel + neighbour, column, row, image}, offset[2] = {right, down};
    arch::copy_windows(to, map, barrier, at, offset);
  }
};

template <class Element_>
struct ImageSource {
  using Element = Element_;
  using Arguments = ImageArguments;
  static constexpr Along along = Along::depth;

  struct Lines {
    Arguments const& arguments;
    int image, row, column;
    COSMATI_DEVICE Lines(Arguments const& all, arch::TensorMap const&, int first_outer, Index)
        : arguments(all) {
      Digits const at = all.outer.digits(first_outer);
      image = at.first, row = all.top + at.middle * all.down, column = all.left + at.last * all.right;
    }
    COSMATI_DEVICE WindowBoxes step(int first_depth) const {
      Arguments const& all = arguments;
      Digits const at = all.depth.digits(first_depth);
      return {all.map,
              at.last,
              column,
              row,
              image,
              all.first_right + at.middle * all.tap_right,
              all.first_down + at.first * all.tap_down};
    }
  };
};

struct FilterBoxes {
  arch::TensorMap const& map;
  int first_outer;
  Digits tap;
  template <Along along, bool many>
  COSMATI_DEVICE void copy(void* to, arch::Barrier& barrier, int neighbour, int line,
                           unsigned short blocks) const {
    int const at[4] = {(along == Along::depth ? tap.last : first_outer) + neighbour, tap.middle, tap.first,
                       (along == Along::depth ? first_outer : tap.last) + line};
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
