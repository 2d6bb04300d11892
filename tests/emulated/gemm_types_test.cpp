// Matrix products of the other types: f64, f16 with sums in f32 and in f16, 8-bit integers by dp4a, mixed
// types.
#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {
namespace {

constexpr Size sizes[] = {{33, 35, 0}, {37, 41, 43}, {32, 64, 32}, {5, 70, 130}};

template <MainLoop main_loop, Multiply multiply, class Element, class Sum, int width, class Result = Sum>
void expect_layouts() {
  constexpr GemmPolicy policy = small_policy(main_loop, multiply);
  constexpr Along outer = Along::mn, depth = Along::k;
  for (Size const& size : sizes) {
    expect_product<PlainGemm<policy, Element, Sum, outer, outer, width, Result>>(size);
    expect_product<PlainGemm<policy, Element, Sum, outer, depth, width, Result>>(size);
    expect_product<PlainGemm<policy, Element, Sum, depth, outer, width, Result>>(size);
    expect_product<PlainGemm<policy, Element, Sum, depth, depth, width, Result>>(size);
  }
}

template <Multiply multiply, class Element, class Sum, int width>
void expect_both_loops() {
  expect_layouts<MainLoop::double_buffered, multiply, Element, Sum, width>();
  expect_layouts<MainLoop::multistage, multiply, Element, Sum, width>();
}

TEST(EmulatedGemmTypes, F64) {
  expect_both_loops<Multiply::fma, double, double, 2>();
  expect_both_loops<Multiply::fma, double, double, 1>();
}
TEST(EmulatedGemmTypes, F16WithSumsInF32) {
  expect_both_loops<Multiply::fma, f16, float, 8>();
  expect_both_loops<Multiply::fma, f16, float, 2>();
  expect_both_loops<Multiply::fma, f16, float, 1>();
}
TEST(EmulatedGemmTypes, F16WithSumsInF16) {
  expect_both_loops<Multiply::half2, f16, f16, 8>();
  expect_both_loops<Multiply::half2, f16, f16, 1>();
}
TEST(EmulatedGemmTypes, Bytes) {
  expect_both_loops<Multiply::dp4a, s8, s32, 16>();
  expect_both_loops<Multiply::dp4a, s8, s32, 4>();
  expect_both_loops<Multiply::dp4a, s8, s32, 2>();
  expect_both_loops<Multiply::dp4a, s8, s32, 1>();
  expect_both_loops<Multiply::dp4a, u8, s32, 8>();
}
TEST(EmulatedGemmTypes, NarrowFloats) {
  expect_layouts<MainLoop::double_buffered, Multiply::fma, bf16, float, 8, bf16>();
  expect_layouts<MainLoop::multistage, Multiply::fma, bf16, float, 8, f16>();
  expect_layouts<MainLoop::double_buffered, Multiply::fma, e4m3, float, 16>();
}

template <MainLoop main_loop, class A, class B, class Sum, class Result>
using Mixed =
    GemmTraits<small_policy(main_loop), StridedSource<A, Along::k, 4>, StridedSource<B, Along::mn, 2>, Sum,
               IdentityEpilogue<Sum>, StridedDestination<Result, 1>>;

TEST(EmulatedGemmTypes, OperandsOfDifferentTypes) {
  for (Size const& size : sizes) {
    expect_product<Mixed<MainLoop::double_buffered, bf16, float, float, f16>>(size);
    expect_product<Mixed<MainLoop::multistage, float, s8, float, double>>(size);
    expect_product<Mixed<MainLoop::double_buffered, u8, s32, s32, s32>>(size);
    expect_product<Mixed<MainLoop::double_buffered, f16, double, double, double>>(size);
  }
  using Bytes =
      GemmTraits<small_policy(MainLoop::double_buffered, Multiply::dp4a), StridedSource<u8, Along::mn, 4>,
                 StridedSource<s8, Along::k, 16>, s32, IdentityEpilogue<s32>, StridedDestination<s32, 4>>;
  for (Size const& size : sizes) expect_product<Bytes>(size);
}

}  // namespace
}  // namespace cosmati::emulated
