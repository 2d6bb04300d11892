// A vector of elements, aligned to its size, at most 16 bytes.
#pragma once
#include "cosmati/arch/config.h"

namespace cosmati {

COSMATI_CONSTEXPR int vector_alignment(int bytes) { return bytes >= 16 ? 16 : bytes; }

template <class Element, int count>
struct alignas(vector_alignment(static_cast<int>(sizeof(Element)) * count)) Vector {
  static_assert((count & (count - 1)) == 0, "a vector has a power of two elements");
  Element element[count];
  COSMATI_DEVICE Element& operator[](int i) { return element[i]; }
  COSMATI_DEVICE Element const& operator[](int i) const { return element[i]; }
};

}  // namespace cosmati
