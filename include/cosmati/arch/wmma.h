// Tensor cores by WMMA (sm_75; bf16, tf32 and f64: sm_80): the fragments of a warp are loaded from shared
// memory, multiplied, and stored there. PTX does not specify which thread holds which element, and neither
// does this file: the only permitted access is to add equal fragments register by register.
//   A (m, k), B (k, n), D (m, n); `by_depth`: the operand is contiguous along k, so that A is row-major and B
//   column-major; otherwise A is column-major and B row-major. The instruction supports all four
//   combinations.
// Lines of contiguous elements begin `stride` elements apart: CUDA's guide ("wmma::load_matrix_sync")
// requires a multiple of 16 bytes. PTX ("wmma.load") requires the address of a matrix to be a multiple of the
// bytes of its fragment in a thread. All lanes of the warp pass the same address.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/config.h"
#include "cosmati/core/number.h"

namespace cosmati::arch {

struct WmmaShape {
  int m, n, k;
};

// The shape of one instruction, by the type of both operands.
template <class Element>
inline constexpr WmmaShape wmma_shape = sizeof(Element) == 8   ? WmmaShape{8, 8, 4}
                                        : sizeof(Element) == 4 ? WmmaShape{16, 16, 8}
                                                               : WmmaShape{16, 16, 16};

// A thread's registers for an operand. For f16, PTX uses twice as many registers as the elements fill.
template <class Element>
struct WmmaOperand {
  static constexpr int registers = is_same<Element, f16> ? 8 : sizeof(Element) == 1 ? 2 : 4;
  unsigned value[registers];
};
template <>
struct WmmaOperand<f64> {
  static constexpr int registers = 1;
  double value[registers];
};

// A thread's registers for sums; two f16 sums share a register.
template <class Sum>
struct WmmaSums {
  using Register = Sum;
  static constexpr int registers = is_same<Sum, f64> ? 2 : 8;
  Register value[registers] = {};
};
template <>
struct WmmaSums<f16> {
  using Register = HalfPair;
  static constexpr int registers = 4;
  Register value[registers] = {};
};

template <class Element, class Sum>
inline constexpr bool wmma_takes = (is_same<Element, f16> && (is_same<Sum, float> || is_same<Sum, f16>)) ||
                                   ((is_same<Element, bf16> ||
                                     is_same<Element, tf32>)&&is_same<Sum, float>) ||
                                   ((is_same<Element, s8> || is_same<Element, u8>)&&is_same<Sum, int>) ||
                                   (is_same<Element, f64> && is_same<Sum, f64>);

}  // namespace cosmati::arch

#if defined(__CUDACC__)
#include "cosmati/arch/wmma_ptx.h"
#else
#include "cosmati/arch/wmma_emulated.h"
#endif
