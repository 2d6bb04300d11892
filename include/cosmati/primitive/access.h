// Runs of elements of tensors: as wide as their addresses allow, converted to the computation type.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/arch/memory.h"
#include "cosmati/core/philox.h"
#include "cosmati/primitive/arguments.h"
#include "cosmati/primitive/math.h"

namespace cosmati {

// The existing part of a run: `count` of its elements, starting at `offset`.
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

// The elements of a run as they are in memory; narrow ones share registers.
template <class Element, int count,
          bool packed = (sizeof(Element) < 4 && count * static_cast<int>(sizeof(Element)) % 4 == 0)>
struct RawRun {
  using Unit = Element;
  static constexpr int per_unit = 1, units = count;
  Unit unit[units];

  COSMATI_DEVICE void clear() {
    COSMATI_UNROLL
    for (int i = 0; i < units; ++i) unit[i] = Element{};
  }
  COSMATI_DEVICE void set(int i, Element value) { unit[i] = value; }
  COSMATI_DEVICE Element get(int i) const { return unit[i]; }
};
template <class Element, int count>
struct RawRun<Element, count, true> {
  using Unit = unsigned;
  static constexpr int bits = 8 * static_cast<int>(sizeof(Element)), per_unit = 32 / bits,
                       units = count / per_unit;
  Unit unit[units];

  COSMATI_DEVICE void clear() {
    COSMATI_UNROLL
    for (int i = 0; i < units; ++i) unit[i] = 0;
  }
  // The run must have been cleared.
  COSMATI_DEVICE void set(int i, Element value) {
    if constexpr (bits == 16)
      unit[i / per_unit] |= static_cast<unsigned>(__builtin_bit_cast(unsigned short, value))
                            << (i % per_unit * bits);
    else
      unit[i / per_unit] |= static_cast<unsigned>(__builtin_bit_cast(unsigned char, value))
                            << (i % per_unit * bits);
  }
  COSMATI_DEVICE Element get(int i) const {
    unsigned const word = unit[i / per_unit] >> (i % per_unit * bits);
    if constexpr (bits == 16)
      return __builtin_bit_cast(Element, static_cast<unsigned short>(word));
    else
      return __builtin_bit_cast(Element, static_cast<unsigned char>(word));
  }
};

// Elements of a compile-time type. `same`: all elements of a run have the same value.
template <class Element_, bool same = false>
struct Elements {
  using Element = Element_;
  static constexpr bool random = false;

  // A thread fetches all its runs before it unpacks the first: a conversion within the branch of a load
  // would wait for that load before the next one is issued.
  template <int width>
  using Raw = RawRun<Element, same ? 1 : width>;
  template <int width>
  COSMATI_DEVICE static void fetch(PrimitiveParameters const&, PrimitiveTensor const& tensor,
                                   ContiguousRange run, Raw<width>& to) {
    Element const* const from = arch::as_global(static_cast<Element const*>(tensor.data)) + run.offset;
    if constexpr (!same && width > 1) {
      if (run.count >= width) {
        constexpr int per_unit = Raw<width>::per_unit, piece = pieces_of<width>() / per_unit;
        COSMATI_UNROLL
        for (int i = 0; i < Raw<width>::units; i += piece) {
          auto const some = arch::load<Vector<typename Raw<width>::Unit, piece>>(from + i * per_unit);
          COSMATI_UNROLL
          for (int j = 0; j < piece; ++j) to.unit[i + j] = some[j];
        }
        return;
      }
    }
    to.clear();
    COSMATI_UNROLL
    for (int i = 0; i < (same ? 1 : width); ++i)
      if (i < run.count) to.set(i, from[i]);
  }
  template <class Real, int width>
  COSMATI_DEVICE static void unpack(PrimitiveParameters const&, Raw<width> const& from, Real (&to)[width]) {
    COSMATI_UNROLL
    for (int i = 0; i < width; ++i) to[i] = widened<Real>(from.get(same ? 0 : i));
  }
  template <class Real, int width>
  COSMATI_DEVICE static void load(PrimitiveParameters const& params, PrimitiveTensor const& tensor,
                                  ContiguousRange run, Real (&to)[width]) {
    Raw<width> raw;
    fetch<width>(params, tensor, run, raw);
    unpack(params, raw, to);
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
    // In each half, the larger of the two values; if only one is NaN, the other.
    COSMATI_DEVICE Pair larger(Pair other) const { return {larger_halves<Element>(word, other.word)}; }
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
  // The integers of a run, whose elements need not be adjacent: by wide accesses if they are, and aligned.
  template <int width>
  COSMATI_DEVICE static void load_integers(PrimitiveTensor const& tensor, ContiguousRange run,
                                           int (&to)[width]) {
    Element const* const from = arch::as_global(static_cast<Element const*>(tensor.data)) + run.offset;
    constexpr int piece = pieces_of<width>();
    if (is_dense<piece>(tensor, from, run.count, width)) {
      COSMATI_UNROLL
      for (int i = 0; i < width; i += piece) {
        auto const some = arch::load<Vector<Element, piece>>(from + i);
        COSMATI_UNROLL
        for (int j = 0; j < piece; ++j) to[i + j] = static_cast<int>(some[j]);
      }
      return;
    }
    COSMATI_UNROLL
    for (int i = 0; i < width; ++i)
      if (i < run.count) to[i] = static_cast<int>(from[i * tensor.run_stride]);
  }
  template <int width>
  COSMATI_DEVICE static void store_integers(PrimitiveTensor const& tensor, ContiguousRange run,
                                            int const (&from)[width]) {
    Element* const to = arch::as_global(static_cast<Element*>(tensor.data)) + run.offset;
    constexpr int piece = pieces_of<width>();
    if (is_dense<piece>(tensor, to, run.count, width)) {
      COSMATI_UNROLL
      for (int i = 0; i < width; i += piece) {
        Vector<Element, piece> some;
        COSMATI_UNROLL
        for (int j = 0; j < piece; ++j) some[j] = static_cast<Element>(from[i + j]);
        arch::store_global(to + i, some);
      }
      return;
    }
    COSMATI_UNROLL
    for (int i = 0; i < width; ++i)
      if (i < run.count) to[i * tensor.run_stride] = static_cast<Element>(from[i]);
  }

 private:
  template <int piece>
  COSMATI_DEVICE static bool is_dense(PrimitiveTensor const& tensor, Element const* at, int count,
                                      int width) {
    return piece > 1 && tensor.run_stride == 1 && count >= width &&
           reinterpret_cast<unsigned long long>(at) % (piece * sizeof(Element)) == 0;
  }
  // Elements per access: a power of two that divides the run, at most 16 bytes. A run need not be a power of
  // two: the columns below two windows with a stride of 3 are six.
  template <int width>
  static COSMATI_CONSTEXPR int pieces_of() {
    int piece = 16 / static_cast<int>(sizeof(Element));
    while (width % piece != 0) piece /= 2;
    return piece;
  }
};

// 1 if dropout keeps the element whose number is its offset, otherwise 0. `by_fours`: every run begins at a
// multiple of four elements and ends at one.
template <bool by_fours = false>
struct KeptElements {
  static constexpr bool random = true;
  template <int width>
  struct Raw {
    unsigned long long number;
  };
  template <int width>
  COSMATI_DEVICE static void fetch(PrimitiveParameters const&, PrimitiveTensor const&, ContiguousRange run,
                                   Raw<width>& to) {
    to.number = static_cast<unsigned long long>(run.offset);
  }
  template <class Real, int width>
  COSMATI_DEVICE static void unpack(PrimitiveParameters const& params, Raw<width> const& from,
                                    Real (&to)[width]) {
    auto const number = from.number;
    // word >= threshold, which may be 2^32, by comparing words.
    bool const all = params.threshold == 0;
    auto const last = static_cast<unsigned>(params.threshold - 1);
    auto const kept = [&](unsigned word) { return all || word > last ? Real(1) : Real(0); };
    if (by_fours || (width % 4 == 0 && number % 4 == 0)) {
      COSMATI_UNROLL
      for (int i = 0; i < width; i += 4) {
        PhiloxBlock const block =
            philox_block(params.seed, params.step, number / 4 + static_cast<unsigned>(i / 4));
        COSMATI_UNROLL
        for (int j = 0; j < 4 && i + j < width; ++j) to[i + j] = kept(block.word[j]);
      }
      return;
    }
    if constexpr (!by_fours) {
      COSMATI_UNROLL
      for (int i = 0; i < width; ++i) {
        PhiloxBlock const block =
            philox_block(params.seed, params.step, (number + static_cast<unsigned>(i)) / 4);
        auto const word = static_cast<unsigned>(number + static_cast<unsigned>(i)) % 4;
        unsigned const bits = word == 0   ? block.word[0]
                              : word == 1 ? block.word[1]
                              : word == 2 ? block.word[2]
                                          : block.word[3];
        to[i] = kept(bits);
      }
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
