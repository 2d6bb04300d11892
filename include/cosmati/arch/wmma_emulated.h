// Emulation for arch/wmma.h, which includes this file. The layout of a fragment differs for each operand,
// direction and kind of sums, and none is the layout of mma.sync: code that relies on a layout, or loads in
// one direction and multiplies in another, gets wrong results here.
#pragma once
#include "cosmati/arch/wmma.h"

#if !defined(__CUDACC__)

#include "cosmati/arch/emulated_value.h"
#include "cosmati/arch/emulator_wmma.h"

namespace cosmati::arch {

namespace emulated {

// The lane and register position of element `element` of a fragment, in row-major order.
struct WmmaPlace {
  int lane, slot;
};
constexpr WmmaPlace wmma_place(int element, int kind) {
  return {(7 * element + 3 * (element / 32) + 5 * kind) % 32, element / 32};
}
template <bool is_a, bool by_depth>
inline constexpr int kind_of_operand = (is_a ? 0 : 2) + (by_depth ? 0 : 1);
inline constexpr int kind_of_sums = 4;

struct WmmaMoveLane {
  unsigned char* registers;
  void const* address;
};
template <class Element>
unsigned char* in_fragment(void* const* lanes, int element, int kind) {
  WmmaPlace const place = wmma_place(element, kind);
  return static_cast<WmmaMoveLane*>(lanes[place.lane])->registers +
         place.slot * static_cast<int>(sizeof(Element));
}

// Calls move(memory, fragment) for each element of a matrix of rows and columns; `by_row`: lines in memory
// are rows.
template <class Element, class Move>
void for_each_of_wmma(void* const* lanes, emulator::WmmaMatrix const& matrix, int rows, int columns, int kind,
                      bool by_row, Move const& move) {
  for (int lane = 0; lane < 32; ++lane)
    emulator::check_wmma_lane(matrix, lane, static_cast<WmmaMoveLane*>(lanes[lane])->address);
  auto* const bytes = static_cast<unsigned char*>(const_cast<void*>(matrix.address));
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      int const line = by_row ? row : column, at = by_row ? column : row;
      move(bytes + line * matrix.stride_bytes + at * static_cast<int>(sizeof(Element)),
           in_fragment<Element>(lanes, row * columns + column, kind));
    }
}

template <bool is_a, bool by_depth, class Element>
void load_wmma_of_warp(void* const* lanes, void* context) {
  constexpr WmmaShape shape = wmma_shape<Element>;
  for_each_of_wmma<Element>(lanes, *static_cast<emulator::WmmaMatrix const*>(context),
                            is_a ? shape.m : shape.k, is_a ? shape.k : shape.n,
                            kind_of_operand<is_a, by_depth>, is_a == by_depth,
                            [](unsigned char const* memory, unsigned char* fragment) {
                              __builtin_memcpy(fragment, memory, sizeof(Element));
                            });
}

template <class Element, class Sum>
void store_wmma_of_warp(void* const* lanes, void* context) {
  for_each_of_wmma<Sum>(lanes, *static_cast<emulator::WmmaMatrix const*>(context), wmma_shape<Element>.m,
                        wmma_shape<Element>.n, kind_of_sums, true,
                        [](unsigned char* memory, unsigned char const* fragment) {
                          __builtin_memcpy(memory, fragment, sizeof(Sum));
                        });
}

struct WmmaProductLane {
  unsigned char* d;
  unsigned char const* a;
  unsigned char const* b;
};

template <class Element, bool a_by_depth, bool b_by_depth, class Sum>
void multiply_wmma_of_warp(void* const* lanes, void*) {
  constexpr WmmaShape shape = wmma_shape<Element>;
  constexpr int size = static_cast<int>(sizeof(Element)), sum_size = static_cast<int>(sizeof(Sum));
  auto const lane = [&](WmmaPlace place) { return static_cast<WmmaProductLane*>(lanes[place.lane]); };
  using Value = decltype(value_of<Element>(nullptr));
  Value b[shape.k][shape.n];
  for (int k = 0; k < shape.k; ++k)
    for (int n = 0; n < shape.n; ++n) {
      WmmaPlace const place = wmma_place(k * shape.n + n, kind_of_operand<false, b_by_depth>);
      b[k][n] = value_of<Element>(lane(place)->b + place.slot * size);
    }
  for (int m = 0; m < shape.m; ++m) {
    Value a[shape.k];
    for (int k = 0; k < shape.k; ++k) {
      WmmaPlace const place = wmma_place(m * shape.k + k, kind_of_operand<true, a_by_depth>);
      a[k] = value_of<Element>(lane(place)->a + place.slot * size);
    }
    for (int n = 0; n < shape.n; ++n) {
      WmmaPlace const place = wmma_place(m * shape.n + n, kind_of_sums);
      unsigned char* const at = lane(place)->d + place.slot * sum_size;
      Sum before;
      __builtin_memcpy(&before, at, sizeof(Sum));
      auto sum = static_cast<Value>(before);
      for (int k = 0; k < shape.k; ++k) sum += a[k] * b[k][n];
      Sum const after = static_cast<Sum>(sum);
      __builtin_memcpy(at, &after, sizeof(Sum));
    }
  }
}

}  // namespace emulated

template <bool is_a, bool by_depth, int stride, class Element>
COSMATI_DEVICE void load_wmma(WmmaOperand<Element>& to, void const* matrix) {
  constexpr WmmaShape shape = wmma_shape<Element>;
  constexpr int size = static_cast<int>(sizeof(Element)), outer = is_a ? shape.m : shape.n;
  emulator::WmmaMatrix place{
      is_a ? "wmma.load.a" : "wmma.load.b", matrix,        by_depth ? outer : shape.k,
      (by_depth ? shape.k : outer) * size,  stride * size, static_cast<int>(sizeof(to))};
  emulator::check_wmma_matrix(place);
  __builtin_memset(&to, 0xff, sizeof(to));
  emulated::WmmaMoveLane lane{reinterpret_cast<unsigned char*>(to.value), matrix};
  emulator::warp_collective(place.name, ~0u, &lane, &emulated::load_wmma_of_warp<is_a, by_depth, Element>,
                            &place);
}

template <class Element, bool a_by_depth, bool b_by_depth, class Sum>
COSMATI_DEVICE void multiply_wmma(WmmaSums<Sum>& d, WmmaOperand<Element> const& a,
                                  WmmaOperand<Element> const& b) {
  static_assert(wmma_takes<Element, Sum>, "wmma does not support this product: see arch/wmma.h");
  emulated::WmmaProductLane lane{reinterpret_cast<unsigned char*>(d.value),
                                 reinterpret_cast<unsigned char const*>(a.value),
                                 reinterpret_cast<unsigned char const*>(b.value)};
  emulator::warp_collective("wmma.mma", ~0u, &lane,
                            &emulated::multiply_wmma_of_warp<Element, a_by_depth, b_by_depth, Sum>);
}

template <class Element, int stride, class Sum>
COSMATI_DEVICE void store_wmma(Sum* matrix, WmmaSums<Sum> const& sums) {
  constexpr int size = static_cast<int>(sizeof(Sum));
  emulator::WmmaMatrix place{"wmma.store.d",        matrix,
                             wmma_shape<Element>.m, wmma_shape<Element>.n * size,
                             stride * size,         static_cast<int>(sizeof(sums))};
  emulator::check_wmma_matrix(place);
  WmmaSums<Sum> copy = sums;
  emulated::WmmaMoveLane lane{reinterpret_cast<unsigned char*>(copy.value), matrix};
  emulator::warp_collective(place.name, ~0u, &lane, &emulated::store_wmma_of_warp<Element, Sum>, &place);
}

}  // namespace cosmati::arch

#endif
