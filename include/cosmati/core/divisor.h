// Division by a run-time constant, precomputed on the host: a multiplication and a shift.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// 1 <= divisor < 2^31. With l = ceil(log2 divisor) and magic = floor(2^32 (2^l - divisor) / divisor) + 1,
// floor(n / divisor) = (floor(n magic / 2^32) + n) / 2^l for all 0 <= n < 2^31 (Granlund and Montgomery
// 1994).
struct Divisor {
  int divisor = 1;
  unsigned magic = 1;
  int shift = 0;

  Divisor() = default;
  COSMATI_CONSTEXPR explicit Divisor(Index value) : divisor(static_cast<int>(value)) {
    while ((Index{1} << shift) < value) ++shift;
    unsigned long long const rest = (1ull << shift) - static_cast<unsigned long long>(value);
    magic = static_cast<unsigned>((rest << 32) / static_cast<unsigned long long>(value) + 1);
  }
  COSMATI_CONSTEXPR unsigned quotient(unsigned n) const {
    return (static_cast<unsigned>((static_cast<unsigned long long>(n) * magic) >> 32) + n) >> shift;
  }
  COSMATI_CONSTEXPR int quotient(int n) const { return static_cast<int>(quotient(static_cast<unsigned>(n))); }
};

}  // namespace cosmati
