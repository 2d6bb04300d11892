// SimpleGemm of 16-bit types: the multiply chosen, and operands of CUDA's own types.
#include "cosmati/gemm/simple.h"

#include "cosmati/gemm/launch.h"
#include "tests/emulated/gemm_case.h"

// Two bytes, as in CUDA's headers.
struct __half {
  unsigned short bits;
};

namespace cosmati::emulated {
namespace {

constexpr PolicyName small = PolicyName::small;

TEST(SimpleGemm, TensorCoresMultiplyHalves) {
  constexpr GemmPolicy halves = SimpleGemm<f16, TN>::policy, brains = SimpleGemm<bf16, NN, small>::policy;
  EXPECT_EQ(halves.multiply, Multiply::mma);
  EXPECT_EQ(halves.main_loop, MainLoop::multistage);
  EXPECT_EQ(halves, named_policy(PolicyName::large, MainLoop::multistage, Multiply::mma, DataType::f32, 2));
  EXPECT_EQ(brains.multiply, Multiply::mma);
  // Operands not aligned for cp.async are copied by loads.
  constexpr GemmPolicy loose = SimpleGemm<f16, TN, small, simple::NoCallable, 2>::policy;
  EXPECT_EQ(loose.multiply, Multiply::wmma);
  EXPECT_EQ(loose.main_loop, MainLoop::double_buffered);
  EXPECT_EQ((SimpleGemm<float, TN, small>::policy.multiply), Multiply::fma);
}

// A column-major D is computed as its transpose: the matrices are (outer, depth).
template <class Own, class Element, Orders orders, int alignment = 16>
void expect_product() {
  using Gemm = SimpleGemm<Own, orders, small, simple::NoCallable, alignment>;
  constexpr int m = 70, n = 90, k = 75, width = alignment / 2;
  Matrix<Element> a(m, k, 1, along_of_a(orders.a), width, 1, 1),
      b(n, k, 1, along_of_b(orders.b), width, 1, 2);
  Matrix<Element> d(m, n, 1, along_of_a(orders.d), width, 0, 3);
  auto const leading = [](MatrixArguments const& matrix) {
    return matrix.row_stride == 1 ? matrix.column_stride : matrix.row_stride;
  };
  typename Gemm::Problem problem{.m = m, .n = n, .k = k};
  problem.a = {static_cast<Own const*>(a.arguments().data), leading(a.arguments())};
  problem.b = {static_cast<Own const*>(b.arguments().data), leading(b.arguments())};
  problem.d = {static_cast<Own*>(d.arguments().data), leading(d.arguments())};
  ASSERT_EQ(launch_gemm<Gemm>(Gemm::params(problem)), LaunchStatus::success);
  int wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += a.value(0, i, l) * b.value(0, j, l);
      wrong += !(d.value(0, i, j) == static_cast<double>(convert<Element>(sum)));
    }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(d.trespasses(m, n, 1), 0);
}

TEST(SimpleGemm, ProductsOfHalves) {
  expect_product<f16, f16, NN>();
  expect_product<bf16, bf16, TN>();
  expect_product<f16, f16, all_row_major, 2>();
}

TEST(SimpleGemm, OperandsOfCudasTypes) {
  using Gemm = SimpleGemm<__half, TN>;
  static_assert(is_same<Gemm::Destination::Element, f16> &&
                is_same<decltype(Gemm::Problem{}.d.data), __half*>);
  static_assert(is_same<decltype(SimpleGemm<__nv_bfloat16, TN>::Problem{}.a.data), __nv_bfloat16 const*>);
  expect_product<__half, f16, TT>();
}

}  // namespace
}  // namespace cosmati::emulated
