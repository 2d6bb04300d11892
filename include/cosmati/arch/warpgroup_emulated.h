// Emulation for arch/warpgroup.h, which includes this file. The emulator gathers the operands and schedules
// the products.
#pragma once
#include "cosmati/arch/warpgroup.h"

#if !defined(__CUDACC__)

#include "cosmati/arch/emulated_value.h"
#include "cosmati/arch/emulator_async.h"

namespace cosmati::arch {

namespace emulated {

// One thread computes for the warpgroup; ThreadSanitizer must not attribute its accesses to the kernel.
template <class Sum, class Value>
__attribute__((no_sanitize("thread"))) Value sum_at(unsigned const* d, int row, int column) {
  if constexpr (is_same<Sum, HalfPair>) {
    HalfPair const pair{d[column / 8 * 2 + row]};
    return static_cast<float>(column % 2 != 0 ? high_half(pair) : low_half(pair));
  } else {
    return __builtin_bit_cast(Value, d[column / 8 * 4 + row * 2 + column % 2]);
  }
}
template <class Sum, class Value>
__attribute__((no_sanitize("thread"))) void set_sum(unsigned* d, int row, int column, Value value) {
  if constexpr (is_same<Sum, HalfPair>) {
    unsigned& pair = d[column / 8 * 2 + row];
    unsigned const half = f16(static_cast<double>(value)).bits;
    pair = column % 2 != 0 ? (pair & 0xffffu) | half << 16 : (pair & 0xffff0000u) | half;
  } else {
    d[column / 8 * 4 + row * 2 + column % 2] = __builtin_bit_cast(unsigned, value);
  }
}

// d[i]: the registers of thread i, in the layout of arch/warpgroup.h.
template <class ElementA, class ElementB, int n, class Sum>
void multiply_of_warpgroup(unsigned char const* a, unsigned char const* b, unsigned* const* d,
                           bool accumulate) {
  using Value = decltype(value_of<ElementA>(a));
  constexpr int size = static_cast<int>(sizeof(ElementA)), depth = 32 / size;
  Value of_b[depth][n];
  for (int column = 0; column < n; ++column)
    for (int k = 0; k < depth; ++k) of_b[k][column] = value_of<ElementB>(b + column * 32 + k * size);
  for (int m = 0; m < 64; ++m) {
    int const first_thread = m / 16 * 32 + m % 8 * 4, row = m / 8 % 2;
    Value sums[n];
    for (int column = 0; column < n; ++column)
      sums[column] = accumulate ? sum_at<Sum, Value>(d[first_thread + column % 8 / 2], row, column) : Value{};
    for (int k = 0; k < depth; ++k) {
      Value const of_a = value_of<ElementA>(a + m * 32 + k * size);
      for (int column = 0; column < n; ++column) sums[column] += of_a * of_b[k][column];
    }
    for (int column = 0; column < n; ++column)
      set_sum<Sum, Value>(d[first_thread + column % 8 / 2], row, column, sums[column]);
  }
}

template <class ElementA, class ElementB, bool a_along_outer, bool b_along_outer, int n, class Sum>
inline constexpr emulator::WarpgroupProduct warpgroup_product = {
    &multiply_of_warpgroup<ElementA, ElementB, n, Sum>,
    "wgmma",
    n,
    static_cast<int>(sizeof(ElementA)),
    warpgroup_registers<n, Sum>,
    a_along_outer,
    b_along_outer};

}  // namespace emulated

template <class ElementA, class ElementB, bool a_along_outer, bool b_along_outer, int n, class Sum, int count>
COSMATI_DEVICE void multiply_warpgroup(Sum (&d)[count], unsigned long long a, unsigned long long b,
                                       bool accumulate) {
  check_warpgroup_product<ElementA, ElementB, a_along_outer, b_along_outer, n, Sum, count>();
  emulator::multiply_warpgroup(
      emulated::warpgroup_product<ElementA, ElementB, a_along_outer, b_along_outer, n, Sum>, d, nullptr, a, b,
      accumulate);
}
template <class ElementA, class ElementB, bool a_along_outer, bool b_along_outer, int n, class Sum, int count>
COSMATI_DEVICE void multiply_warpgroup(Sum (&d)[count], unsigned const (&a)[4], unsigned long long b,
                                       bool accumulate) {
  static_assert(!a_along_outer, "A in registers must be K-major");
  check_warpgroup_product<ElementA, ElementB, a_along_outer, b_along_outer, n, Sum, count>();
  emulator::multiply_warpgroup(
      emulated::warpgroup_product<ElementA, ElementB, a_along_outer, b_along_outer, n, Sum>, d, a, 0, b,
      accumulate);
}

COSMATI_DEVICE void warpgroup_begin() { emulator::warpgroup_begin(); }
COSMATI_DEVICE void warpgroup_commit() { emulator::warpgroup_commit(); }
template <int in_flight>
COSMATI_DEVICE void warpgroup_wait() {
  emulator::warpgroup_wait(in_flight);
}
template <class Sum, int count>
COSMATI_DEVICE void fence_registers(Sum (&)[count]) {}

template <int registers>
COSMATI_DEVICE void release_registers() {
  static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "setmaxnreg: 24, 32, ... 256");
  emulator::set_registers(registers, false);
}
template <int registers>
COSMATI_DEVICE void acquire_registers() {
  static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "setmaxnreg: 24, 32, ... 256");
  emulator::set_registers(registers, true);
}

}  // namespace cosmati::arch

#endif
