// The value of an element in the emulated tensor cores.
#pragma once
#include "cosmati/core/number.h"

#if !defined(__CUDACC__)

namespace cosmati::arch::emulated {

// Exact products of these values are ints or floats; products of f64 are rounded once, with the sum.
template <class Element>
auto value_of(unsigned char const* bytes) {
  Element element;
  __builtin_memcpy(&element, bytes, sizeof(Element));
  if constexpr (is_same<Element, f64>) {
    return element;
  } else if constexpr (is_same<Element, s8> || is_same<Element, u8>) {
    return static_cast<int>(element);
  } else if constexpr (is_same<Element, tf32>) {  // tensor cores ignore the lower bits of an f32
    return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, element) & 0xffffe000u);
  } else {
    return static_cast<float>(element);
  }
}

}  // namespace cosmati::arch::emulated

#endif
