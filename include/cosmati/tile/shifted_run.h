// Sixteen contiguous bytes that begin at any element: they are extracted in registers from the two aligned
// 16-byte pieces that contain them.
#pragma once
#include "cosmati/arch/memory.h"

namespace cosmati {

// The memory of a matrix, including gaps between its rows; nothing outside is read.
template <class Element>
struct MemoryBounds {
  Element const* begin;
  Element const* end;
};

template <class Element>
class ShiftedRun {
  static constexpr int size = static_cast<int>(sizeof(Element));
  using Words = Vector<unsigned, 4>;
  using Address = unsigned long long;

 public:
  // Loads elements from[0], from[stride], ..., of which the first `valid` exist; the others are zeros. The
  // loads are issued here and waited for in value().
  COSMATI_DEVICE void load(Element const* from, Index stride, int valid,
                           MemoryBounds<Element> const& bounds) {
    Address const address = reinterpret_cast<Address>(from), first = address & ~Address{15};
    shift_ = static_cast<int>(address & 15);
    bool const reaches_second = shift_ + valid * size > 16;
    in_pieces_ = stride == 1 && valid > 0 && first >= reinterpret_cast<Address>(bounds.begin) &&
                 first + (reaches_second ? 32 : 16) <= reinterpret_cast<Address>(bounds.end);
    piece_[0] = piece_[1] = Words{};
    if (!in_pieces_) return;
    piece_[0] = arch::load_constant<Words>(reinterpret_cast<void const*>(first));
    if (reaches_second) piece_[1] = arch::load_constant<Words>(reinterpret_cast<void const*>(first + 16));
  }

  // Returns the value of the same run.
  COSMATI_DEVICE Words value(Element const* from, Index stride, int valid) const {
    if (!in_pieces_) return one_by_one(from, stride, valid);
    unsigned word[8];
    COSMATI_UNROLL
    for (int i = 0; i < 8; ++i) word[i] = piece_[i / 4][i % 4];
    COSMATI_UNROLL
    for (int i = 0; i < 6; ++i) word[i] = (shift_ & 8) != 0 ? word[i + 2] : word[i];
    COSMATI_UNROLL
    for (int i = 0; i < 5; ++i) word[i] = (shift_ & 4) != 0 ? word[i + 1] : word[i];
    Words result;
    COSMATI_UNROLL
    for (int i = 0; i < 4; ++i) {
      Address const both = word[i] | static_cast<Address>(word[i + 1]) << 32;
      int const bits = (valid * size - 4 * i) * 8;  // valid bits of this word
      unsigned const mask = bits >= 32 ? ~0u : bits <= 0 ? 0u : ~(~0u << bits);
      result[i] = static_cast<unsigned>(both >> (shift_ & 3) * 8) & mask;
    }
    return result;
  }

 private:
  // Loads elements one by one: at the ends of the matrix, and if they are not contiguous.
  COSMATI_DEVICE static Words one_by_one(Element const* from, Index stride, int valid) {
    Address half[2] = {0, 0};
    COSMATI_NO_UNROLL
    for (int e = 0; e < valid; ++e) {
      Address const bits = bits_of(arch::load_constant<Element>(from + e * stride));
      (e * size < 8 ? half[0] : half[1]) |= bits << e * size % 8 * 8;
    }
    return {{static_cast<unsigned>(half[0]), static_cast<unsigned>(half[0] >> 32),
             static_cast<unsigned>(half[1]), static_cast<unsigned>(half[1] >> 32)}};
  }
  COSMATI_DEVICE static Address bits_of(Element element) {
    if constexpr (size == 1)
      return __builtin_bit_cast(unsigned char, element);
    else
      return __builtin_bit_cast(unsigned short, element);
  }

  int shift_;
  bool in_pieces_;
  Words piece_[2];
};

}  // namespace cosmati
