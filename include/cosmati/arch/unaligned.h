// Loads of 16 bytes from addresses that are multiples of an element, but not of 16 bytes.
#pragma once
#include "cosmati/arch/memory.h"

namespace cosmati::arch {

// Bits `shift` to `shift` + 31 of the 64 bits of high and low; shift is less than 32.
#if defined(__CUDACC__)
COSMATI_DEVICE unsigned funnel_shift(unsigned low, unsigned high, unsigned shift) {
  return __funnelshift_r(low, high, shift);
}
#else
COSMATI_DEVICE unsigned funnel_shift(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> shift);
}
#endif

// Loads a vector of 16 bytes with two loads from the aligned addresses around it, or, if its own address is
// aligned, with two loads from it. Only the 16-byte units that contain bytes of the vector are read.
template <class Vector>
COSMATI_DEVICE Vector load_unaligned(void const* address) {
  struct alignas(16) Words {
    unsigned word[4];
  };
  static_assert(sizeof(Vector) == sizeof(Words));
  auto const before = static_cast<unsigned>(reinterpret_cast<unsigned long long>(address) % 16);
  char const* const from = static_cast<char const*>(address) - before;
  Words const low = load_constant<Words>(from), high = load_constant<Words>(from + (before > 0 ? 16 : 0));
  unsigned by_two[6], by_one[5];
  COSMATI_UNROLL
  for (int i = 0; i < 6; ++i) {
    unsigned const here = i < 4 ? low.word[i] : high.word[i - 4];
    unsigned const later = i < 2 ? low.word[i + 2] : high.word[i - 2];
    by_two[i] = before % 16 >= 8 ? later : here;
  }
  COSMATI_UNROLL
  for (int i = 0; i < 5; ++i) by_one[i] = before % 8 >= 4 ? by_two[i + 1] : by_two[i];
  Words result;
  COSMATI_UNROLL
  for (int i = 0; i < 4; ++i) result.word[i] = funnel_shift(by_one[i], by_one[i + 1], before % 4 * 8);
  return __builtin_bit_cast(Vector, result);
}

// Moves the elements of the vector up by one and stores `first` before them; the last one is lost.
template <class Element, int count>
COSMATI_DEVICE void push_front(Vector<Element, count>& vector, Element first) {
  constexpr int bytes = static_cast<int>(sizeof(Element));
  if constexpr (bytes < 4 && bytes * count >= 4) {
    struct Words {
      unsigned word[bytes * count / 4];
    };
    struct Pair {
      Element element[4 / bytes];
    };
    Words words = __builtin_bit_cast(Words, vector);
    COSMATI_UNROLL
    for (int i = bytes * count / 4 - 1; i > 0; --i)
      words.word[i] = funnel_shift(words.word[i - 1], words.word[i], 32 - 8 * bytes);
    words.word[0] = words.word[0] << 8 * bytes | __builtin_bit_cast(unsigned, Pair{{first}});
    using Result = Vector<Element, count>;
    vector = __builtin_bit_cast(Result, words);
  } else {
    COSMATI_UNROLL
    for (int i = count - 1; i > 0; --i) vector[i] = vector[i - 1];
    vector[0] = first;
  }
}

}  // namespace cosmati::arch
