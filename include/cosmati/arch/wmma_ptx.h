// The PTX of arch/wmma.h, which includes this file. Parts of the instruction's name are operands too
// (constraint "C"), so that one asm statement serves all types with the same number of registers.
#pragma once
#include "cosmati/arch/wmma.h"

#if defined(__CUDACC__)

namespace cosmati::arch {

// The part of an instruction's name that follows the layouts: for wmma.load, and for wmma.mma and wmma.store,
// where it depends on the type of the sums.
template <class Element>
struct WmmaLoadWord;
template <class Element, class Sum>
struct WmmaWord;
#define COSMATI_LOAD_WORD(element, words)           \
  template <>                                       \
  struct WmmaLoadWord<element> {                    \
    static constexpr char const load[] = "." words; \
  }
COSMATI_LOAD_WORD(f16, "m16n16k16.shared.f16");
COSMATI_LOAD_WORD(bf16, "m16n16k16.shared.bf16");
COSMATI_LOAD_WORD(tf32, "m16n16k8.shared.tf32");
COSMATI_LOAD_WORD(s8, "m16n16k16.shared.s8");
COSMATI_LOAD_WORD(u8, "m16n16k16.shared.u8");
COSMATI_LOAD_WORD(f64, "m8n8k4.shared.f64");
#undef COSMATI_LOAD_WORD
#define COSMATI_WORD(element, sum, shape, types, stored)               \
  template <>                                                          \
  struct WmmaWord<element, sum> {                                      \
    static constexpr char const multiply[] = "." shape "." types;      \
    static constexpr char const store[] = "." shape ".shared." stored; \
  }
COSMATI_WORD(f16, float, "m16n16k16", "f32.f32", "f32");
COSMATI_WORD(f16, f16, "m16n16k16", "f16.f16", "f16");
COSMATI_WORD(bf16, float, "m16n16k16", "f32.bf16.bf16.f32", "f32");
COSMATI_WORD(tf32, float, "m16n16k8", "f32.tf32.tf32.f32", "f32");
COSMATI_WORD(s8, int, "m16n16k16", "s32.s8.s8.s32", "s32");
COSMATI_WORD(u8, int, "m16n16k16", "s32.u8.u8.s32", "s32");
COSMATI_WORD(f64, f64, "m8n8k4", "f64.f64.f64.f64", "f64");
#undef COSMATI_WORD

template <bool row>
struct WmmaLayout {
  static constexpr char const word[] = ".row";
};
template <>
struct WmmaLayout<false> {
  static constexpr char const word[] = ".col";
};
template <bool is_a>
struct WmmaName {
  static constexpr char const load[] = "wmma.load.a.sync.aligned";
};
template <>
struct WmmaName<false> {
  static constexpr char const load[] = "wmma.load.b.sync.aligned";
};

#define COSMATI_IN_2(kind, x) kind(x[0]), kind(x[1])
#define COSMATI_IN_4(kind, x) COSMATI_IN_2(kind, x), kind(x[2]), kind(x[3])
#define COSMATI_IN_8(kind, x) COSMATI_IN_4(kind, x), kind(x[4]), kind(x[5]), kind(x[6]), kind(x[7])
#define COSMATI_BITS_4(kind, x) kind(x[0].bits), kind(x[1].bits), kind(x[2].bits), kind(x[3].bits)

// Loads a matrix that begins at `matrix` in shared memory; its lines are `stride` elements apart.
template <bool is_a, bool by_depth, int stride, class Element>
COSMATI_DEVICE void load_wmma(WmmaOperand<Element>& to, void const* matrix) {
  unsigned const from = static_cast<unsigned>(__cvta_generic_to_shared(matrix));
  auto& r = to.value;
  using Word = WmmaLoadWord<Element>;
  using Layout = WmmaLayout<is_a == by_depth>;
#define COSMATI_LOAD(names, outputs, address, step, words)                                             \
  asm volatile(words " {" names "}, [" address "], " step ";"                                          \
               : outputs                                                                               \
               : "r"(from), "n"(stride), "C"(WmmaName<is_a>::load), "C"(Layout::word), "C"(Word::load) \
               : "memory")
  if constexpr (WmmaOperand<Element>::registers == 8)
    COSMATI_LOAD("%0, %1, %2, %3, %4, %5, %6, %7", COSMATI_IN_8("=r", r), "%8", "%9", "%10%11%12");
  else if constexpr (WmmaOperand<Element>::registers == 4)
    COSMATI_LOAD("%0, %1, %2, %3", COSMATI_IN_4("=r", r), "%4", "%5", "%6%7%8");
  else if constexpr (WmmaOperand<Element>::registers == 2)
    COSMATI_LOAD("%0, %1", COSMATI_IN_2("=r", r), "%2", "%3", "%4%5%6");
  else
    COSMATI_LOAD("%0", "=d"(r[0]), "%1", "%2", "%3%4%5");
#undef COSMATI_LOAD
}

// d += a * b.
template <class Element, bool a_by_depth, bool b_by_depth, class Sum>
COSMATI_DEVICE void multiply_wmma(WmmaSums<Sum>& sums, WmmaOperand<Element> const& of_a,
                                  WmmaOperand<Element> const& of_b) {
  static_assert(wmma_takes<Element, Sum>, "wmma does not support this product: see arch/wmma.h");
  auto& d = sums.value;
  auto const& a = of_a.value;
  auto const& b = of_b.value;
  using Word = WmmaWord<Element, Sum>;
#define COSMATI_MULTIPLY(d_, a_, b_, words, outputs, ...)                                   \
  asm("wmma.mma.sync.aligned" words " {" d_ "}, {" a_ "}, {" b_ "}, {" d_ "};"              \
      : outputs                                                                             \
      : __VA_ARGS__, "C"(WmmaLayout<a_by_depth>::word), "C"(WmmaLayout<!b_by_depth>::word), \
        "C"(Word::multiply))
#define COSMATI_EIGHT_SUMS "%0, %1, %2, %3, %4, %5, %6, %7"
  if constexpr (is_same<Element, f16> && is_same<Sum, f16>)
    COSMATI_MULTIPLY("%0, %1, %2, %3", "%4, %5, %6, %7, %8, %9, %10, %11",
                     "%12, %13, %14, %15, %16, %17, %18, %19", "%20%21%22", COSMATI_BITS_4("+r", d),
                     COSMATI_IN_8("r", a), COSMATI_IN_8("r", b));
  else if constexpr (is_same<Element, f16>)
    COSMATI_MULTIPLY(COSMATI_EIGHT_SUMS, "%8, %9, %10, %11, %12, %13, %14, %15",
                     "%16, %17, %18, %19, %20, %21, %22, %23", "%24%25%26", COSMATI_IN_8("+f", d),
                     COSMATI_IN_8("r", a), COSMATI_IN_8("r", b));
  else if constexpr (WmmaOperand<Element>::registers == 4)
    COSMATI_MULTIPLY(COSMATI_EIGHT_SUMS, "%8, %9, %10, %11", "%12, %13, %14, %15", "%16%17%18",
                     COSMATI_IN_8("+f", d), COSMATI_IN_4("r", a), COSMATI_IN_4("r", b));
  else if constexpr (WmmaOperand<Element>::registers == 2)
    COSMATI_MULTIPLY(COSMATI_EIGHT_SUMS, "%8, %9", "%10, %11", "%12%13%14", COSMATI_IN_8("+r", d),
                     COSMATI_IN_2("r", a), COSMATI_IN_2("r", b));
  else
    COSMATI_MULTIPLY("%0, %1", "%2", "%3", "%4%5%6", COSMATI_IN_2("+d", d), "d"(a[0]), "d"(b[0]));
#undef COSMATI_MULTIPLY
#undef COSMATI_EIGHT_SUMS
}

// Stores rows of sums to shared memory, `stride` elements apart.
template <class Element, int stride, class Sum>
COSMATI_DEVICE void store_wmma(Sum* matrix, WmmaSums<Sum> const& sums) {
  unsigned const to = static_cast<unsigned>(__cvta_generic_to_shared(matrix));
  auto const& d = sums.value;
  using Word = WmmaWord<Element, Sum>;
#define COSMATI_STORE(names, step, word, ...)                                                               \
  asm volatile("wmma.store.d.sync.aligned.row" word " [%0], {" names "}, " step ";" ::"r"(to), __VA_ARGS__, \
               "n"(stride), "C"(Word::store)                                                                \
               : "memory")
  if constexpr (is_same<Sum, f16>)
    COSMATI_STORE("%1, %2, %3, %4", "%5", "%6", COSMATI_BITS_4("r", d));
  else if constexpr (is_same<Sum, float>)
    COSMATI_STORE("%1, %2, %3, %4, %5, %6, %7, %8", "%9", "%10", COSMATI_IN_8("f", d));
  else if constexpr (is_same<Sum, int>)
    COSMATI_STORE("%1, %2, %3, %4, %5, %6, %7, %8", "%9", "%10", COSMATI_IN_8("r", d));
  else
    COSMATI_STORE("%1, %2", "%3", "%4", COSMATI_IN_2("d", d));
#undef COSMATI_STORE
}

#undef COSMATI_IN_2
#undef COSMATI_IN_4
#undef COSMATI_IN_8
#undef COSMATI_BITS_4

}  // namespace cosmati::arch

#endif
