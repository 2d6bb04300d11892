// Packs a tensor for TMA, with contiguous channels in units of 16 bytes, padded with zeros: tensors with
// pixels or images innermost, and those with fewer channels than a unit, whose rows may be joined.
// docs/decisions/0025.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/packing_arguments.h"
#include "cosmati/tile/run.h"

namespace cosmati {

template <class Bits>
struct PackTraits {
  using Element = Bits;
  static constexpr int width = 16 / static_cast<int>(sizeof(Bits));
};

// Grid: (ceil(places / pack_threads), ceil(runs / pack_runs_of_thread)); block: pack_threads. Adjacent
// threads process adjacent columns. Types of the same size share a kernel, since the bit pattern of zero is
// the same.
template <class Traits>
COSMATI_KERNEL(pack_threads, 8)
pack_kernel(COSMATI_PARAMETER PackParameters params) {
  using Element = typename Traits::Element;
  constexpr int width = Traits::width;
  Index const place = Index{arch::block_x()} * pack_threads + arch::thread();
  if (place >= params.places) return;
  int const line = params.columns.quotient(static_cast<int>(place)), image = params.rows.quotient(line);
  int const row = params.top + (line - image * params.rows.divisor) * params.row_step,
            column = params.left + static_cast<int>(place) - line * params.columns.divisor;
  bool const inside = column >= 0 && column < params.width;
  int const first = arch::block_y() * pack_runs_of_thread;
  int below = params.channels.quotient(first * width),
      channel = first * width - below * params.channels.divisor;
  Element const* const from = arch::as_global(static_cast<Element const*>(params.from));
  Index const pixel = image * params.image_stride + row * params.row_stride + column * params.column_stride;
  Element* const to =
      arch::as_global(static_cast<Element*>(params.to)) + (place * params.runs + first) * width;
  // All loads are issued before the first one is waited for; elements that do not exist are loaded from
  // offset 0.
  Vector<Element, width> value[pack_runs_of_thread];
  COSMATI_UNROLL
  for (int run = 0; run < pack_runs_of_thread; ++run) {
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e) {
      int const at = row + below;
      bool const exists = inside && below < params.rows_of_place && at >= 0 && at < params.height;
      Index const offset = exists ? pixel + below * params.row_stride + channel * params.channel_stride : 0;
      Element const element = arch::load_constant<Element>(from + offset);
      value[run][e] = exists ? element : Element{};
      if (++channel == params.channels.divisor) channel = 0, ++below;
    }
  }
  COSMATI_UNROLL
  for (int run = 0; run < pack_runs_of_thread; ++run)
    if (first + run < params.runs) arch::store_global(to + run * width, value[run]);
}

// Grid: ceil(elements / pack_threads); block: pack_threads. Adjacent threads process adjacent channels.
template <class Bits>
COSMATI_KERNEL(pack_threads, 8)
unpack_kernel(COSMATI_PARAMETER UnpackParameters params) {
  Index const index = Index{arch::block_x()} * pack_threads + arch::thread();
  if (index >= params.elements) return;
  int const tap = params.channels.quotient(static_cast<int>(index)), line = params.columns.quotient(tap),
            filter = params.rows.quotient(line);
  int const channel = static_cast<int>(index) - tap * params.channels.divisor,
            column = tap - line * params.columns.divisor, row = line - filter * params.rows.divisor;
  int const place = params.rows_of_place.quotient(row), below = row - place * params.rows_of_place.divisor;
  Bits const* const from = arch::as_global(static_cast<Bits const*>(params.from));
  Bits* const to = arch::as_global(static_cast<Bits*>(params.to));
  to[filter * params.filter_stride + channel * params.channel_stride + row * params.row_stride +
     column * params.column_stride] =
      arch::load_constant<Bits>(from + (filter * params.filter + place * params.row + column * params.column +
                                        below * params.channels.divisor + channel));
}

}  // namespace cosmati
