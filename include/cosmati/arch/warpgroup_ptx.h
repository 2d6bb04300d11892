// The PTX of arch/warpgroup.h, which includes this file. Parts of the instruction's name are operands too
// (constraint "C"), so that one asm statement serves all types.
#pragma once
#include "cosmati/arch/warpgroup.h"
#include "cosmati/arch/warpgroup_operands.h"

#if defined(__CUDACC__)

namespace cosmati::arch {

template <class Number>
struct WarpgroupWord;
#define COSMATI_WORD(number, name, k)              \
  template <>                                      \
  struct WarpgroupWord<number> {                   \
    static constexpr char const type[] = "." name; \
    static constexpr char const depth[] = k;       \
  }
COSMATI_WORD(f16, "f16", "k16");
COSMATI_WORD(bf16, "bf16", "k16");
COSMATI_WORD(tf32, "tf32", "k8");
COSMATI_WORD(e4m3, "e4m3", "k32");
COSMATI_WORD(e5m2, "e5m2", "k32");
COSMATI_WORD(s8, "s8", "k32");
COSMATI_WORD(u8, "u8", "k32");
COSMATI_WORD(float, "f32", "");
COSMATI_WORD(int, "s32", "");
COSMATI_WORD(HalfPair, "f16", "");
#undef COSMATI_WORD

// The part after the operands: the signs for floating-point types, and the major orders of 16-bit operands in
// shared memory.
template <class Element, bool from_registers, bool a_along_outer, bool b_along_outer>
struct WarpgroupTail {
  static constexpr bool is_integer = is_same<Element, s8> || is_same<Element, u8>;
  static constexpr bool has_a = sizeof(Element) == 2 && !from_registers, has_b = sizeof(Element) == 2;
  static constexpr char const signs[] = {is_integer ? ' ' : ',', is_integer ? ' ' : '1',
                                         is_integer ? ' ' : ',', is_integer ? ' ' : '1', '\0'};
  static constexpr char const majors[] = {has_a ? ',' : ' ',
                                          !has_a          ? ' '
                                          : a_along_outer ? '1'
                                                          : '0',
                                          has_b ? ',' : ' ',
                                          !has_b          ? ' '
                                          : b_along_outer ? '1'
                                                          : '0',
                                          '\0'};
};

// The instruction with `count` sum registers; A by DESCRIPTOR or in REGISTERS.
#define COSMATI_WGMMA(...) COSMATI_WGMMA_AT(__VA_ARGS__)  // after COSMATI_INPUTS has expanded to twelve names
#define COSMATI_WGMMA_AT(n, count, kind, bits, A, b_, flag_, k_, sum_, left_, right_, signs_, majors_, ...) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " flag_                                                    \
               ", 0;\n"                                                                                     \
               "wgmma.mma_async.sync.aligned.m64n" #n k_ sum_ left_ right_ " {" COSMATI_NAMES_##count       \
               "}, " COSMATI_NAMES_OF_A_IN_##A(__VA_ARGS__) ", " b_ ", p" signs_ majors_ ";\n}"             \
               : COSMATI_SUMS_##count(kind, bits)                                                           \
               : "l"(b), "r"(static_cast<int>(accumulate)), "C"(WarpgroupWord<ElementA>::depth),            \
                 "C"(WarpgroupWord<Sum>::type), "C"(WarpgroupWord<ElementA>::type),                         \
                 "C"(WarpgroupWord<ElementB>::type), "C"(Tail::signs), "C"(Tail::majors), COSMATI_A_IN_##A)
#define COSMATI_NAMES_OF_A_IN_DESCRIPTOR(a0, a1, a2, a3) a0
#define COSMATI_A_IN_DESCRIPTOR "l"(a)
#define COSMATI_NAMES_OF_A_IN_REGISTERS(a0, a1, a2, a3) "{" a0 ", " a1 ", " a2 ", " a3 "}"
#define COSMATI_A_IN_REGISTERS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])

#define COSMATI_WGMMA_OF_FLOATS(columns, count, A)   \
  if constexpr (n == columns && is_same<Sum, float>) \
    COSMATI_WGMMA(columns, count, "+f", , A, COSMATI_INPUTS_##count);
#define COSMATI_WGMMA_OF_INTS(columns, count, A)   \
  if constexpr (n == columns && is_same<Sum, int>) \
    COSMATI_WGMMA(columns, count, "+r", , A, COSMATI_INPUTS_##count);
#define COSMATI_WGMMA_OF_PAIRS(columns, count, A)       \
  if constexpr (n == columns && is_same<Sum, HalfPair>) \
    COSMATI_WGMMA(columns, count, "+r", .bits, A, COSMATI_INPUTS_##count);
#define COSMATI_WGMMA_OF_ALL_FLOATS(A) \
  COSMATI_WGMMA_OF_FLOATS(8, 4, A)     \
  COSMATI_WGMMA_OF_FLOATS(16, 8, A)    \
  COSMATI_WGMMA_OF_FLOATS(24, 12, A)   \
  COSMATI_WGMMA_OF_FLOATS(32, 16, A)   \
  COSMATI_WGMMA_OF_FLOATS(40, 20, A)   \
  COSMATI_WGMMA_OF_FLOATS(48, 24, A)   \
  COSMATI_WGMMA_OF_FLOATS(56, 28, A)   \
  COSMATI_WGMMA_OF_FLOATS(64, 32, A)   \
  COSMATI_WGMMA_OF_FLOATS(72, 36, A)   \
  COSMATI_WGMMA_OF_FLOATS(80, 40, A)   \
  COSMATI_WGMMA_OF_FLOATS(88, 44, A)   \
  COSMATI_WGMMA_OF_FLOATS(96, 48, A)   \
  COSMATI_WGMMA_OF_FLOATS(104, 52, A)  \
  COSMATI_WGMMA_OF_FLOATS(112, 56, A)  \
  COSMATI_WGMMA_OF_FLOATS(120, 60, A)  \
  COSMATI_WGMMA_OF_FLOATS(128, 64, A)  \
  COSMATI_WGMMA_OF_FLOATS(136, 68, A)  \
  COSMATI_WGMMA_OF_FLOATS(144, 72, A)  \
  COSMATI_WGMMA_OF_FLOATS(152, 76, A)  \
  COSMATI_WGMMA_OF_FLOATS(160, 80, A)  \
  COSMATI_WGMMA_OF_FLOATS(168, 84, A)  \
  COSMATI_WGMMA_OF_FLOATS(176, 88, A)  \
  COSMATI_WGMMA_OF_FLOATS(184, 92, A)  \
  COSMATI_WGMMA_OF_FLOATS(192, 96, A)  \
  COSMATI_WGMMA_OF_FLOATS(200, 100, A) \
  COSMATI_WGMMA_OF_FLOATS(208, 104, A) \
  COSMATI_WGMMA_OF_FLOATS(216, 108, A) \
  COSMATI_WGMMA_OF_FLOATS(224, 112, A) \
  COSMATI_WGMMA_OF_FLOATS(232, 116, A) \
  COSMATI_WGMMA_OF_FLOATS(240, 120, A) \
  COSMATI_WGMMA_OF_FLOATS(248, 124, A) \
  COSMATI_WGMMA_OF_FLOATS(256, 128, A)
#define COSMATI_WGMMA_OF_ALL_INTS(A) \
  COSMATI_WGMMA_OF_INTS(8, 4, A)     \
  COSMATI_WGMMA_OF_INTS(16, 8, A)    \
  COSMATI_WGMMA_OF_INTS(32, 16, A)   \
  COSMATI_WGMMA_OF_INTS(48, 24, A)   \
  COSMATI_WGMMA_OF_INTS(64, 32, A)   \
  COSMATI_WGMMA_OF_INTS(80, 40, A)   \
  COSMATI_WGMMA_OF_INTS(96, 48, A)   \
  COSMATI_WGMMA_OF_INTS(112, 56, A)  \
  COSMATI_WGMMA_OF_INTS(128, 64, A)  \
  COSMATI_WGMMA_OF_INTS(144, 72, A)  \
  COSMATI_WGMMA_OF_INTS(160, 80, A)  \
  COSMATI_WGMMA_OF_INTS(176, 88, A)  \
  COSMATI_WGMMA_OF_INTS(192, 96, A)  \
  COSMATI_WGMMA_OF_INTS(208, 104, A) \
  COSMATI_WGMMA_OF_INTS(224, 112, A) \
  COSMATI_WGMMA_OF_INTS(240, 120, A) \
  COSMATI_WGMMA_OF_INTS(256, 128, A)
#define COSMATI_WGMMA_OF_ALL_PAIRS(A) \
  COSMATI_WGMMA_OF_PAIRS(8, 2, A)     \
  COSMATI_WGMMA_OF_PAIRS(16, 4, A)    \
  COSMATI_WGMMA_OF_PAIRS(32, 8, A)    \
  COSMATI_WGMMA_OF_PAIRS(48, 12, A)   \
  COSMATI_WGMMA_OF_PAIRS(64, 16, A)   \
  COSMATI_WGMMA_OF_PAIRS(80, 20, A)   \
  COSMATI_WGMMA_OF_PAIRS(96, 24, A)   \
  COSMATI_WGMMA_OF_PAIRS(112, 28, A)  \
  COSMATI_WGMMA_OF_PAIRS(128, 32, A)  \
  COSMATI_WGMMA_OF_PAIRS(144, 36, A)  \
  COSMATI_WGMMA_OF_PAIRS(160, 40, A)  \
  COSMATI_WGMMA_OF_PAIRS(176, 44, A)  \
  COSMATI_WGMMA_OF_PAIRS(192, 48, A)  \
  COSMATI_WGMMA_OF_PAIRS(208, 52, A)  \
  COSMATI_WGMMA_OF_PAIRS(224, 56, A)  \
  COSMATI_WGMMA_OF_PAIRS(240, 60, A)  \
  COSMATI_WGMMA_OF_PAIRS(256, 64, A)

// d = a * b, plus d if `accumulate`, with both operands in shared memory.
template <class ElementA, class ElementB, bool a_along_outer, bool b_along_outer, int n, class Sum, int count>
COSMATI_DEVICE void multiply_warpgroup(Sum (&d)[count], unsigned long long a, unsigned long long b,
                                       bool accumulate) {
  check_warpgroup_product<ElementA, ElementB, a_along_outer, b_along_outer, n, Sum, count>();
  using Tail = WarpgroupTail<ElementA, false, a_along_outer, b_along_outer>;
  COSMATI_WGMMA_OF_ALL_FLOATS(DESCRIPTOR)
  COSMATI_WGMMA_OF_ALL_INTS(DESCRIPTOR)
  COSMATI_WGMMA_OF_ALL_PAIRS(DESCRIPTOR)
}
// The same with A in registers, K-major, and sums in float; other sums would only take time to compile.
template <class ElementA, class ElementB, bool a_along_outer, bool b_along_outer, int n, class Sum, int count>
COSMATI_DEVICE void multiply_warpgroup(Sum (&d)[count], unsigned const (&a)[4], unsigned long long b,
                                       bool accumulate) {
  static_assert(!a_along_outer, "A in registers must be K-major");
  static_assert(is_same<Sum, float>, "with A in registers, sums are float");
  check_warpgroup_product<ElementA, ElementB, a_along_outer, b_along_outer, n, Sum, count>();
  using Tail = WarpgroupTail<ElementA, true, a_along_outer, b_along_outer>;
  COSMATI_WGMMA_OF_ALL_FLOATS(REGISTERS)
}

// Required before the first product, and after accesses to the sums or registers of A.
COSMATI_DEVICE void warpgroup_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Closes a group of products.
COSMATI_DEVICE void warpgroup_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until all but the latest `in_flight` groups are complete.
template <int in_flight>
COSMATI_DEVICE void warpgroup_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(in_flight) : "memory");
}

// Keeps the compiler from moving uses of these sums before this point; call it after warpgroup_wait().
template <int count>
COSMATI_DEVICE void fence_registers(float (&d)[count]) {
  COSMATI_UNROLL
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int count>
COSMATI_DEVICE void fence_registers(int (&d)[count]) {
  COSMATI_UNROLL
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(d[i])::"memory");
}
template <int count>
COSMATI_DEVICE void fence_registers(HalfPair (&d)[count]) {
  COSMATI_UNROLL
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(d[i].bits)::"memory");
}
COSMATI_DEVICE void keep_uninitialized(HalfPair& value) { asm volatile("" : "=r"(value.bits)); }

// The warpgroup releases registers down to `registers` per thread, or waits for more: multiples of 8 from 24
// to 256.
template <int registers>
COSMATI_DEVICE void release_registers() {
  static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "setmaxnreg: 24, 32, ... 256");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
COSMATI_DEVICE void acquire_registers() {
  static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "setmaxnreg: 24, 32, ... 256");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace cosmati::arch

#undef COSMATI_WGMMA
#undef COSMATI_WGMMA_AT
#undef COSMATI_NAMES_OF_A_IN_DESCRIPTOR
#undef COSMATI_A_IN_DESCRIPTOR
#undef COSMATI_NAMES_OF_A_IN_REGISTERS
#undef COSMATI_A_IN_REGISTERS
#undef COSMATI_WGMMA_OF
#undef COSMATI_WGMMA_OF_EACH

#endif
