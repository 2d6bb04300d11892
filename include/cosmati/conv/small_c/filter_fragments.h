// The filter of fprop_small_c in shared memory, as fragments of mma.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/small_c/fprop_small_c_arguments.h"

namespace cosmati {

template <class Traits>
struct SmallCFilter {
  using Element = typename Traits::Element;
  static constexpr int size = static_cast<int>(sizeof(Element)), per_word = 4 / size, per_unit = 16 / size;
  static constexpr int run = 8, tiles = 4 * Traits::bands;
  using Unit = Vector<Element, per_unit>;

  FpropSmallCArguments const& window;
  FpropSmallCShape const shape;
  unsigned char* fragments;
  int first;  // filter of the block

  // Fragments in the layout of mma's b: lane 4 * g + t holds, of column g, the four bytes of depth at byte
  // 4 * t and the four at byte 16 + 4 * t. Columns 2 * t and 2 * t + 1 of four adjacent tiles, whose sums
  // lane t has, are eight adjacent filters.
  COSMATI_DEVICE void load() const {
    if (shape.filter_units == FilterUnits::channels)
      load_by_channels();
    else if (shape.filter_units == FilterUnits::filters)
      load_by_filters();
    else
      load_by_elements();
  }

  // The offset in the fragments of byte `byte` of a step's depth, in column `n` of the block; `step`: of all
  // rows of taps.
  COSMATI_DEVICE static int offset_in_fragments(int step, int n, int byte) {
    int const tile = n / FpropSmallCShape::band * 4 + n % run / 2;
    int const g = n % FpropSmallCShape::band / run * 2 + n % 2;
    return ((step * tiles + tile) * 32 + g * 4 + byte % 16 / 4) * 8 + byte / 16 * 4 + byte % 4;
  }

  // Loads `items` 16-byte units, several at once: unit i is at `at` of locate(i, at), and zero if that is
  // false.
  template <class Locate, class Store>
  COSMATI_DEVICE void load_units(int items, Locate locate, Store keep) const {
    auto const* const from = arch::as_global(static_cast<Element const*>(window.filter));
    constexpr int together = 4;
    COSMATI_NO_UNROLL
    for (int begin = arch::thread(); begin < items; begin += together * Traits::threads) {
      Unit value[together];
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) {
        int const item = begin + i * Traits::threads;
        Index at = 0;
        bool const exists = item < items && locate(item, at);
        Unit const loaded = arch::load_constant<Unit>(from + (exists ? at : 0));
        value[i] = exists ? loaded : Unit{};
      }
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i)
        if (int const item = begin + i * Traits::threads; item < items) keep(item, value[i]);
    }
  }

  // Units of adjacent channels of a filter.
  COSMATI_DEVICE void load_by_channels() const {
    int const steps = shape.steps(size), of_filter = shape.rows.taps * steps * 2;
    auto const locate = [&](int item, Index& at) {
      int const k = first + item / of_filter, of_taps = item % of_filter, r = of_taps / (steps * 2);
      int const depth = (of_taps - r * steps * 2) * per_unit, s = depth / Traits::place;
      at = k * window.filter_output + depth - s * Traits::place + r * window.filter_row +
           s * window.filter_column;
      return k < window.filters && s < shape.columns.taps;
    };
    load_units(of_filter * tiles * 8, locate, [&](int item, Unit const& value) {
      int const n = item / of_filter, half = item % of_filter;
      auto const words = __builtin_bit_cast(Vector<unsigned, 4>, value);
      COSMATI_UNROLL
      for (int i = 0; i < 4; ++i)
        arch::store(fragments + offset_in_fragments(half / 2, n, half % 2 * 16 + i * 4), words[i]);
    });
  }

  // Units of the same element of adjacent filters.
  COSMATI_DEVICE void load_by_filters() const {
    constexpr int across = tiles * 8 / per_unit, of_step = 32 / size;
    int const steps = shape.steps(size);
    auto const locate = [&](int item, Index& at) {
      int const k = first + item % across * per_unit, of_taps = item / across,
                r = of_taps / (steps * of_step);
      int const depth = of_taps - r * steps * of_step, s = depth / Traits::place;
      int const c = depth - s * Traits::place;
      at = k + c * window.filter_input + r * window.filter_row + s * window.filter_column;
      return k < window.filters && s < shape.columns.taps && c < shape.channels;
    };
    load_units(shape.rows.taps * steps * of_step * across, locate, [&](int item, Unit const& value) {
      int const n = item % across * per_unit, depth = item / across;
      COSMATI_UNROLL
      for (int i = 0; i < per_unit; ++i)
        arch::store(fragments + offset_in_fragments(depth / of_step, n + i, depth % of_step * size),
                    value[i]);
    });
  }

  COSMATI_DEVICE void load_by_elements() const {
    auto const* const from = arch::as_global(static_cast<Element const*>(window.filter));
    int const steps = shape.steps(size), words = shape.rows.taps * steps * tiles * 64;
    constexpr int together = 4;  // loads in flight
    COSMATI_NO_UNROLL
    for (int begin = arch::thread(); begin < words; begin += together * Traits::threads) {
      Vector<Element, per_word> value[together];
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) {
        int const word = begin + i * Traits::threads, lane = word / 2 % 32, g = lane / 4;
        int const tile = word / 64 % tiles, of_row = word / 64 / tiles, r = of_row / steps;
        int const k = first + tile / 4 * FpropSmallCShape::band + g / 2 * run + tile % 4 * 2 + g % 2;
        int const depth = ((of_row - r * steps) * 32 + word % 2 * 16 + lane % 4 * 4) / size;
        COSMATI_UNROLL
        for (int e = 0; e < per_word; ++e) {
          int const s = (depth + e) / Traits::place, c = (depth + e) % Traits::place;
          bool const exists =
              word < words && s < shape.columns.taps && c < shape.channels && k < window.filters;
          Index const at = k * window.filter_output + c * window.filter_input + r * window.filter_row +
                           s * window.filter_column;
          Element const element = arch::load_constant<Element>(from + (exists ? at : 0));
          value[i][e] = exists ? element : Element{};
        }
      }
      COSMATI_UNROLL
      for (int i = 0; i < together; ++i) {
        int const word = begin + i * Traits::threads;
        if (word < words) arch::store(fragments + word * 4, value[i]);
      }
    }
  }
};

}  // namespace cosmati
