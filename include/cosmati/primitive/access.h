// Runs of elements of tensors: as wide as their addresses allow, converted to the computation type.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/memory.h"
#include "cosmati/core/philox.h"
#include "cosmati/primitive/arguments.h"

namespace cosmati {

// The existing part of a run: `count` of its elements, from `offset` on.
struct ContiguousRange {
  Index offset;
  int count;
};

// Converts to Real; exact if Real can represent the value.
template <class Real, class Element>
COSMATI_DEVICE Real widened(Element value) {
  if constexpr (is_same<Element, Real>)
    return value;
  else if constexpr (is_same<Element, double> || is_same<Element, int> || is_same<Element, signed char> ||
                     is_same<Element, unsigned char> || is_same<Element, float>)
    return static_cast<Real>(value);
  else
    return static_cast<Real>(arch::Widen<Element>::of(value));
}

// Elements of a compile-time type. `same`: all elements of a run have the same value.
template <class Element_, bool same = false>
struct Elements {
  using Element = Element_;
  static constexpr bool random = false;

  template <class Real, int width>
  COSMATI_DEVICE static void load(PrimitiveParameters const&, PrimitiveTensor const& tensor,
                                  ContiguousRange run, Real (&to)[width]) {
    Element const* const from = arch::as_global(static_cast<Element const*>(tensor.data)) + run.offset;
    if constexpr (same) {
      Real const value = run.count > 0 ? widened<Real>(*from) : Real(0);
      COSMATI_UNROLL
      for (int i = 0; i < width; ++i) to[i] = value;
    } else if (width > 1 && run.count >= width) {
      constexpr int piece = pieces_of<width>();
      COSMATI_UNROLL
      for (int i = 0; i < width; i += piece) {
        auto const some = arch::load<Vector<Element, piece>>(from + i);
        COSMATI_UNROLL
        for (int j = 0; j < piece; ++j) to[i + j] = widened<Real>(some[j]);
      }
    } else {
      COSMATI_UNROLL
      for (int i = 0; i < width; ++i) to[i] = i < run.count ? widened<Real>(from[i]) : Real(0);
    }
  }

  template <class Real, int width>
  COSMATI_DEVICE static void store(PrimitiveTensor const& tensor, ContiguousRange run,
                                   Real const (&from)[width]) {
    Element* const to = arch::as_global(static_cast<Element*>(tensor.data)) + run.offset;
    if (width > 1 && run.count >= width) {
      constexpr int piece = pieces_of<width>();
      COSMATI_UNROLL
      for (int i = 0; i < width; i += piece) {
        Vector<Element, piece> some;
        COSMATI_UNROLL
        for (int j = 0; j < piece; ++j) some[j] = arch::number_cast<Element>(from[i + j]);
        arch::store_global(to + i, some);
      }
    } else {
      COSMATI_UNROLL
      for (int i = 0; i < width; ++i)
        if (i < run.count) to[i] = arch::number_cast<Element>(from[i]);
    }
  }

  // Two adjacent elements of a 16-bit type, in one register.
  struct Pair {
    unsigned word;

    template <class Real>
    COSMATI_DEVICE Real get(int which) const {
      return widened<Real>(Element::from_bits(static_cast<unsigned short>(which == 0 ? word : word >> 16)));
    }
    // Makes the compiler recompute values derived from the pair, which it would otherwise keep in two
    // registers.
    COSMATI_DEVICE void forget() { arch::opaque(word); }
  };
  template <int pairs>
  COSMATI_DEVICE static void load_pairs(PrimitiveTensor const& tensor, Index offset, Pair (&to)[pairs]) {
    Element const* const from = arch::as_global(static_cast<Element const*>(tensor.data)) + offset;
    auto const words = arch::load<Vector<unsigned, pairs>>(from);
    COSMATI_UNROLL
    for (int i = 0; i < pairs; ++i) to[i].word = words[i];
  }
  template <class Real>
  COSMATI_DEVICE static Pair pair_of(Real value) {
    return {static_cast<unsigned>(arch::number_cast<Element>(value).bits) * 0x10001u};
  }

  // Copies a run to shared memory without conversion; complete after wait_copies().
  template <int width>
  using Run = Vector<Element, width>;
  template <int width>
  COSMATI_DEVICE static void copy(Vector<Element, width>& to, PrimitiveTensor const& tensor,
                                  ContiguousRange run) {
    constexpr int bytes = width * static_cast<int>(sizeof(Element));
    Element const* const from = arch::as_global(static_cast<Element const*>(tensor.data)) + run.offset;
    if constexpr (bytes == 4 || bytes == 8 || bytes == 16) {
      arch::copy_async<bytes>(&to, from, run.count * static_cast<int>(sizeof(Element)));
    } else {
      COSMATI_UNROLL
      for (int i = 0; i < width; ++i)
        if (i < run.count) to[i] = from[i];
    }
  }
  template <class Real, int width>
  COSMATI_DEVICE static void unpack(Vector<Element, width> const& from, Real (&to)[width]) {
    auto const some = arch::load<Vector<Element, width>>(&from);
    COSMATI_UNROLL
    for (int i = 0; i < width; ++i) to[i] = widened<Real>(some[i]);
  }

  COSMATI_DEVICE static int integer(PrimitiveTensor const& tensor, Index offset) {
    return static_cast<int>(arch::as_global(static_cast<Element const*>(tensor.data))[offset]);
  }
  COSMATI_DEVICE static void store_integer(PrimitiveTensor const& tensor, Index offset, int value) {
    arch::as_global(static_cast<Element*>(tensor.data))[offset] = static_cast<Element>(value);
  }

 private:
  // Elements per access: a power of two that divides the run, at most 16 bytes. A run need not be a power of
  // two: the columns below two windows with a stride of 3 are six.
  template <int width>
  static COSMATI_CONSTEXPR int pieces_of() {
    int piece = 16 / static_cast<int>(sizeof(Element));
    while (width % piece != 0) piece /= 2;
    return piece;
  }
};

// 1 if dropout keeps the element whose number is its offset, otherwise 0.
struct KeptElements {
  static constexpr bool random = true;
  template <class Real, int width>
  COSMATI_DEVICE static void load(PrimitiveParameters const& params, PrimitiveTensor const&,
                                  ContiguousRange run, Real (&to)[width]) {
    auto const number = static_cast<unsigned long long>(run.offset);
    if (width % 4 == 0 && number % 4 == 0) {
      COSMATI_UNROLL
      for (int i = 0; i < width; i += 4) {
        PhiloxBlock const block =
            philox_block(params.seed, params.step, number / 4 + static_cast<unsigned>(i / 4));
        COSMATI_UNROLL
        for (int j = 0; j < 4 && i + j < width; ++j)
          to[i + j] = block.word[j] >= params.threshold ? Real(1) : Real(0);
      }
      return;
    }
    COSMATI_UNROLL
    for (int i = 0; i < width; ++i) {
      PhiloxBlock const block =
          philox_block(params.seed, params.step, (number + static_cast<unsigned>(i)) / 4);
      auto const word = static_cast<unsigned>(number + static_cast<unsigned>(i)) % 4;
      unsigned const bits = word == 0   ? block.word[0]
                            : word == 1 ? block.word[1]
                            : word == 2 ? block.word[2]
                                        : block.word[3];
      to[i] = bits >= params.threshold ? Real(1) : Real(0);
    }
  }
};

// The inputs or the outputs of a kernel, in the order of PrimitiveParameters::tensor.
template <class... Access>
struct AccessList {
  static constexpr int size = sizeof...(Access);
};
template <int i, class List>
struct AccessAt;
template <class First, class... Rest>
struct AccessAt<0, AccessList<First, Rest...>> {
  using type = First;
};
template <int i, class First, class... Rest>
struct AccessAt<i, AccessList<First, Rest...>> : AccessAt<i - 1, AccessList<Rest...>> {};

}  // namespace cosmati
