// Vectors of elements kept in 32-bit words, and converted by the instructions that read half of a word or
// write both halves. If the compiler sees 16-bit elements, it first moves each of them to a separate
// register.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/memory.h"

namespace cosmati::arch {

// `bytes`: 2, 4, 8 or 16; two bytes are the lower half of a word.
template <int bytes>
struct Words {
  static constexpr int count = bytes < 4 ? 1 : bytes / 4;
  unsigned word[count] = {};
};

#if defined(__CUDACC__)

// Loads constant global memory if it exists; otherwise the words are 0.
template <int bytes>
COSMATI_DEVICE Words<bytes> load_words(void const* address, bool exists) {
  Words<bytes> to;
  int const guard = exists;
  if constexpr (bytes == 16)
    asm("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\n"
        "mov.u32 %3, 0;\n@p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
        : "=&r"(to.word[0]), "=&r"(to.word[1]), "=&r"(to.word[2]), "=&r"(to.word[3])
        : "l"(address), "r"(guard));
  else if constexpr (bytes == 8)
    asm("{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\n"
        "@p ld.global.nc.v2.u32 {%0, %1}, [%2];\n}"
        : "=&r"(to.word[0]), "=&r"(to.word[1])
        : "l"(address), "r"(guard));
  else if constexpr (bytes == 4)
    asm("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\nmov.u32 %0, 0;\n@p ld.global.nc.u32 %0, [%1];\n}"
        : "=&r"(to.word[0])
        : "l"(address), "r"(guard));
  else
    asm("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\nmov.u32 %0, 0;\n@p ld.global.nc.u16 %0, [%1];\n}"
        : "=&r"(to.word[0])
        : "l"(address), "r"(guard));
  return to;
}

#else

template <int bytes>
COSMATI_DEVICE Words<bytes> load_words(void const* address, bool exists) {
  Words<bytes> to;
  if (!exists) return to;
  emulator::check_access(address, bytes);
  __builtin_memcpy(&to, address, bytes);
  return to;
}

#endif

// Returns element i, converted to f32.
template <class Element, int bytes>
COSMATI_DEVICE float widened(Words<bytes> const& words, int i) {
  static_assert(is_same<Element, f16> || is_same<Element, bf16> || is_same<Element, f32>);
  if constexpr (is_same<Element, f32>) {
    return __builtin_bit_cast(float, words.word[i]);
  } else {
    unsigned const word = words.word[i / 2];
    if constexpr (is_same<Element, bf16>)
      return __builtin_bit_cast(float, i % 2 == 0 ? word << 16 : word & 0xffff0000u);
    else
      return number_cast<float>(f16::from_bits(static_cast<unsigned short>(word >> i % 2 * 16)));
  }
}

// Returns the values, rounded to Element.
template <class Element, int count>
COSMATI_DEVICE auto narrowed(float const (&value)[count]) {
  static_assert(is_same<Element, f16> || is_same<Element, bf16> || is_same<Element, f32>);
  Words<count* static_cast<int>(sizeof(Element))> to;
  if constexpr (is_same<Element, f32>) {
    COSMATI_UNROLL
    for (int i = 0; i < count; ++i) to.word[i] = __builtin_bit_cast(unsigned, value[i]);
  } else {
    COSMATI_UNROLL
    for (int i = 0; i < count; i += 2) {
      float const low = value[i], high = i + 1 < count ? value[i + 1] : 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
      if constexpr (is_same<Element, f16>)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to.word[i / 2]) : "f"(high), "f"(low));
      else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to.word[i / 2]) : "f"(high), "f"(low));
#else
      to.word[i / 2] = static_cast<unsigned>(number_cast<Element>(low).bits) |
                       static_cast<unsigned>(number_cast<Element>(high).bits) << 16;
#endif
    }
  }
  return to;
}

// Stores the words to global memory.
template <int bytes>
COSMATI_DEVICE void store_words(void* address, Words<bytes> const& words) {
  if constexpr (bytes < 4) {
    store(address, static_cast<unsigned short>(words.word[0]));
  } else {
    store_global(address, words);
  }
}

}  // namespace cosmati::arch
