// Conversion to f16 and bf16 by branch-free bit operations.
#include "nets/dcgan/narrow.h"

#include <algorithm>
#include <bit>

namespace cosmati::dcgan {
namespace {

// Rounds to nearest even: adds half of the last place kept minus one, plus one if that place is odd.
constexpr unsigned rounded(unsigned bits, unsigned dropped) {
  return (bits + (1U << (dropped - 1)) - 1 + (bits >> dropped & 1)) >> dropped;
}

unsigned short to_f16(float value) {
  unsigned const bits = std::bit_cast<unsigned>(value), size = bits & 0x7fffffffU;
  constexpr unsigned bias_step = (127 - 15) << 10, infinity = 0x7c00, not_a_number = 0x7e00;
  unsigned const normal = rounded(size, 13) - bias_step;
  // Next to 1/2 the last place of an f32 is 2^-24, as for subnormal f16 numbers, so the addition rounds.
  unsigned const small =
      std::bit_cast<unsigned>(std::bit_cast<float>(size) + 0.5F) - std::bit_cast<unsigned>(0.5F);
  unsigned const finite = size < (113U << 23) ? small : std::min(normal, infinity);
  return static_cast<unsigned short>((size > (255U << 23) ? not_a_number : finite) | (bits >> 16 & 0x8000U));
}

unsigned short to_bf16(float value) {
  unsigned const bits = std::bit_cast<unsigned>(value), size = bits & 0x7fffffffU;
  unsigned const finite = rounded(size, 16);
  return static_cast<unsigned short>((size > (255U << 23) ? 0x7fc0U : finite) | (bits >> 16 & 0x8000U));
}

}  // namespace

void narrow(DataType type, float const* from, Index count, unsigned short* to) {
  if (type == DataType::f16)
    std::transform(from, from + count, to, [](float value) { return to_f16(value); });
  else
    std::transform(from, from + count, to, [](float value) { return to_bf16(value); });
}

}  // namespace cosmati::dcgan
