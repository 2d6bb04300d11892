// A GEMM in one line: dense matrices of one type, in any order, with a named or user-defined policy.
//
// Element is a type of this library, or CUDA's __half or __nv_bfloat16.
//
//   using Gemm = SimpleGemm<float, NN>;
//   launch_gemm<Gemm>(Gemm::params({.m = m, .n = n, .k = k, .a = {a, lda}, .b = {b, ldb}, .d = {d, ldd}}));
#pragma once
#include "cosmati/arch/architecture.h"
#include "cosmati/gemm/kernel.h"
#include "cosmati/gemm/order.h"
#include "cosmati/gemm/policies.h"

// Only declared here; users of these types include the CUDA headers.
struct __half;
struct __nv_bfloat16;

namespace cosmati {

namespace simple {

// The library's type for a user's element type.
template <class Element>
struct NumberOf {
  using type = Element;
};
template <>
struct NumberOf<__half> {
  using type = f16;
};
template <>
struct NumberOf<__nv_bfloat16> {
  using type = bf16;
};

// Sums are f32 (f64 for f64, s32 for integers); D has the operands' type (f32 for fp8, s32 for integers).
// With a named policy, tensor cores multiply f16 and bf16 if all target architectures support it, dp4a
// multiplies 8-bit integers, and fma everything else.
template <class Element>
struct Types {
  using Sum = f32;
  using Result = f32;
  static constexpr DataType sum = DataType::f32;
  static constexpr Multiply multiply = Multiply::fma;
};
template <>
struct Types<f64> {
  using Sum = f64;
  using Result = f64;
  static constexpr DataType sum = DataType::f64;
  static constexpr Multiply multiply = Multiply::fma;
};
template <>
struct Types<f16> : Types<f32> {
  using Result = f16;
};
template <>
struct Types<bf16> : Types<f32> {
  using Result = bf16;
};
template <>
struct Types<s32> {
  using Sum = s32;
  using Result = s32;
  static constexpr DataType sum = DataType::s32;
  static constexpr Multiply multiply = Multiply::fma;
};
template <>
struct Types<s8> : Types<s32> {
  static constexpr Multiply multiply = Multiply::dp4a;
};
template <>
struct Types<u8> : Types<s8> {};

// `run_bytes`: the alignment. mma requires cp.async with at least 4 bytes; wmma supports loads of any width.
template <class Element>
COSMATI_CONSTEXPR GemmPolicy policy_of(GemmPolicy const& own, int) {
  return own;
}
template <class Element>
COSMATI_CONSTEXPR GemmPolicy policy_of(PolicyName name, int run_bytes) {
  constexpr bool is_f16 = is_same<Element, f16>, is_bf16 = is_same<Element, bf16>;
  constexpr int architecture = arch::min_architecture();
  if ((is_f16 || is_bf16) && architecture >= 800 && run_bytes >= 4)
    return named_policy(name, MainLoop::multistage, Multiply::mma, DataType::f32, sizeof(Element));
  if ((is_f16 && architecture >= 750) || (is_bf16 && architecture >= 800))
    return named_policy(name, MainLoop::double_buffered, Multiply::wmma, DataType::f32, sizeof(Element));
  return named_policy(name, MainLoop::double_buffered, Types<Element>::multiply, Types<Element>::sum);
}

COSMATI_CONSTEXPR int width_of(int alignment, int element_bytes) {
  int const bytes = alignment < 16 ? alignment : 16;
  return bytes > element_bytes ? bytes / element_bytes : 1;
}

// A column-major D is computed as its transpose, which is row-major: the callable still receives (m, n).
template <class Callable>
struct Transposed {
  Callable callable;
  template <class Real>
  requires EpilogueCallable<Callable, Real> COSMATI_DEVICE Real operator()(Real sum, Index n, Index m) const {
    return callable(sum, m, n);
  }
};

struct NoCallable {};

template <bool second, class First, class Second>
struct Choose {
  using type = First;
};
template <class First, class Second>
struct Choose<true, First, Second> {
  using type = Second;
};

template <class Real, class Callable, bool transposed>
struct EpilogueOf {
  using StridedTensor = typename Choose<transposed, Callable, Transposed<Callable>>::type;
  using type = CallableEpilogue<Real, StridedTensor>;
  COSMATI_CONSTEXPR static StridedTensor arguments(Callable const& callable) { return {callable}; }
};
template <class Real, bool transposed>
struct EpilogueOf<Real, NoCallable, transposed> {
  using type = IdentityEpilogue<Real>;
  COSMATI_CONSTEXPR static NoEpilogueArguments arguments(NoCallable) { return {}; }
};

template <class Own, Orders orders, auto policy, class Callable, int alignment>
struct Parts {
  using Element = typename NumberOf<Own>::type;
  static_assert(
      requires { policy_of<Element>(policy, alignment); },
      "the policy of a SimpleGemm is a PolicyName or a GemmPolicy");
  static constexpr bool transposed = orders.d == Order::column_major;
  static constexpr int width = width_of(alignment, static_cast<int>(sizeof(Element)));
  using A = StridedSource<Element, along_of_a(orders.a), width>;
  using B = StridedSource<Element, along_of_b(orders.b), width>;
  using Sum = typename Types<Element>::Sum;
  using Result = typename Types<Element>::Result;
  using OwnResult = typename Choose<is_same<Result, Element>, Result, Own>::type;  // the user's type
  using D = StridedDestination<Result, width_of(alignment, static_cast<int>(sizeof(Result)))>;
  using Epilogue = EpilogueOf<Sum, Callable, transposed>;
  static constexpr GemmPolicy own_policy =
      policy_of<Element>(policy, width* static_cast<int>(sizeof(Element)));
  using Traits = GemmTraits<own_policy, typename Choose<transposed, A, B>::type,
                            typename Choose<transposed, B, A>::type, Sum, typename Epilogue::type, D>;
};

}  // namespace simple

// D = A * B, or d(m, n) = callable(sum, m, n). `policy` is a PolicyName or a GemmPolicy. All pointers,
// leading dimensions and batch strides must be multiples of `alignment` bytes; sizeof(Element) is sufficient,
// but slower.
template <class Element, Orders orders, auto policy = PolicyName::large, class Callable = simple::NoCallable,
          int alignment = 16>
struct SimpleGemm : simple::Parts<Element, orders, policy, Callable, alignment>::Traits {
  using Parts = simple::Parts<Element, orders, policy, Callable, alignment>;
  using Params = typename Parts::Traits::Params;

  template <class Any>
  struct Matrix {
    Any* data = nullptr;          // in device memory
    Index leading_dimension = 0;  // elements between rows (row-major) or columns (column-major)
    Index batch_stride = 0;       // elements between the matrices of a batch
  };
  struct Problem {
    Index m = 0, n = 0, k = 0;
    Matrix<Element const> a = {}, b = {};
    Matrix<typename Parts::OwnResult> d = {};
    Callable epilogue = {};
  };

  COSMATI_CONSTEXPR static Params params(Problem const& p) {
    MatrixArguments const a = matrix_a(orders.a, p.a.data, p.a.leading_dimension, p.a.batch_stride);
    MatrixArguments const b = matrix_b(orders.b, p.b.data, p.b.leading_dimension, p.b.batch_stride);
    Params params;
    params.m = Parts::transposed ? p.n : p.m;
    params.n = Parts::transposed ? p.m : p.n;
    params.k = p.k;
    params.a = Parts::transposed ? b : a;
    params.b = Parts::transposed ? a : b;
    params.d = row_major(p.d.data, p.d.leading_dimension, p.d.batch_stride);
    params.epilogue = Parts::Epilogue::arguments(p.epilogue);
    return params;
  }
};

}  // namespace cosmati
