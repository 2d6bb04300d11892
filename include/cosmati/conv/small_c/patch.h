// The patch of x that a tile of outputs reads, in shared memory: a few channels per pixel, with zeros outside
// the image.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/small_c/fprop_small_c_arguments.h"

namespace cosmati {

// The tile of a block: its image and its first output.
struct SmallCTile {
  int image, row, column;
  COSMATI_DEVICE SmallCTile(FpropSmallCArguments const& window, FpropSmallCShape const& shape, int number) {
    int const down_of_all = window.tiles_across.quotient(number);
    image = window.tiles_down.quotient(down_of_all);
    row = (down_of_all - image * window.tiles_down.divisor) * shape.down;
    column = (number - down_of_all * window.tiles_across.divisor) * shape.across;
  }
};

// Begins to copy `bytes` bytes, 16, 8 or 4, to shared memory; zeros if they do not exist.
COSMATI_DEVICE void copy_unit(int bytes, void* shared, void const* global, bool exists) {
  if (bytes == 16)
    arch::copy_async<16>(shared, global, exists ? 16 : 0);
  else if (bytes == 8)
    arch::copy_async<8>(shared, global, exists ? 8 : 0);
  else
    arch::copy_async<4>(shared, global, exists ? 4 : 0);
}

template <class Traits>
struct SmallCPatch {
  using Element = typename Traits::Element;
  static constexpr int size = static_cast<int>(sizeof(Element)), pixel_bytes = Traits::place * size;
  static constexpr FpropSmallCShape of_place{{}, {}, 1, Traits::place, Traits::async};
  static constexpr int pitch = of_place.pitch(size);
  static constexpr bool flat = of_place.is_flat(size);
  using Pixels = Vector<Element, Traits::async ? 1 : Traits::place>[Traits::pixels];  // a thread's part

  FpropSmallCArguments const& window;
  FpropSmallCShape const shape;
  int taps_before = 0;  // rows of taps before those of the patch

  // Returns the offset in its image of pixel `item` of a tile's patch; -1 if there is none.
  COSMATI_DEVICE int offset_of(SmallCTile const& tile, int item) const {
    int const patch_row = item / shape.patch_columns();
    int const row = tile.row * shape.rows.stride - window.top + taps_before + patch_row;
    int const column =
        tile.column * shape.columns.stride - window.left + item - patch_row * shape.patch_columns();
    bool const exists = item < shape.patch() &&
                        static_cast<unsigned>(row) < static_cast<unsigned>(window.image_rows) &&
                        static_cast<unsigned>(column) < static_cast<unsigned>(window.image_columns);
    return exists ? row * window.image_row + column * window.image_column : -1;
  }

  // Begins to load the patch of a tile, with zeros outside x: into shared memory or, if it is not copied,
  // into registers, from where keep_patch() moves it.
  COSMATI_DEVICE void load_patch(SmallCTile const& tile, Pixels& pixel, unsigned char* patch) const {
    auto const* const image =
        arch::as_global(static_cast<Element const*>(window.image)) + tile.image * window.image_stride;
    if constexpr (flat) {
      int const total = (window.image_columns - tile.column) * pixel_bytes;
      COSMATI_NO_UNROLL
      for (int byte = arch::thread() * 16; byte < shape.patch() * pixel_bytes; byte += Traits::threads * 16) {
        int const rest = total - byte, valid = rest < 0 ? 0 : rest < 16 ? rest : 16;
        int const offset = tile.column * Traits::place + byte / size;
        arch::copy_async<16>(patch + byte, image + (valid > 0 ? offset : 0), valid);
      }
      arch::commit_copies();
    } else if constexpr (Traits::async) {
      int const units = pixel_bytes / shape.unit, of_unit = shape.unit / size;
      COSMATI_NO_UNROLL
      for (int item = arch::thread(); item < shape.patch() * units; item += Traits::threads) {
        int const at = item / units, channel = (item - at * units) * of_unit, offset = offset_of(tile, at);
        bool const exists = offset >= 0 && channel < shape.channels;
        copy_unit(shape.unit, patch + at * pitch + channel * size, image + (exists ? offset + channel : 0),
                  exists);
      }
      arch::commit_copies();
    } else {
      COSMATI_UNROLL
      for (int i = 0; i < Traits::pixels; ++i) {
        int const offset = offset_of(tile, arch::thread() + i * Traits::threads);
        COSMATI_UNROLL
        for (int c = 0; c < Traits::place; ++c) {
          bool const is_channel = c < shape.channels;
          Element const element = arch::load_constant<Element>(image + (offset < 0 ? 0 : offset) +
                                                               (is_channel ? c * window.image_channel : 0));
          pixel[i][c] = offset >= 0 && is_channel ? element : Element{};
        }
      }
    }
  }
  COSMATI_DEVICE void keep_patch(Pixels const& pixel, unsigned char* patch) const {
    if constexpr (!Traits::async) {
      COSMATI_UNROLL
      for (int i = 0; i < Traits::pixels; ++i) {
        int const item = arch::thread() + i * Traits::threads;
        if (item < shape.patch()) arch::store(patch + item * pitch, pixel[i]);
      }
    }
  }
};

}  // namespace cosmati
