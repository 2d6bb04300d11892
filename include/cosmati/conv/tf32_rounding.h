// Rounding to the precision of tensor core operands.
#pragma once
#include "cosmati/arch/convert.h"

namespace cosmati {

// Rounds to nearest, ties to even; for tf32 in a few instructions on the bits.
template <class Element>
COSMATI_DEVICE Element rounded_to(float value) {
  return arch::number_cast<Element>(value);
}
template <>
COSMATI_DEVICE tf32 rounded_to<tf32>(float value) {
  unsigned bits = __builtin_bit_cast(unsigned, value);
  if ((~bits & 0x7f800000u) != 0) bits = (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
  tf32 result;
  result.value = __builtin_bit_cast(float, bits);
  return result;
}

}  // namespace cosmati
