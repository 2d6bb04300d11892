// Epilogues of emulated products: expressions with operands and extra outputs, callables, both schedules.
#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {
namespace {

// 2 * acc + 3 * c + bias[n] - row[m]; store(pre, acc): the composer's output, written by hand.
struct Function {
  using Real = float;
  static constexpr int scalars = 1;
  COSMATI_DEVICE static Real apply(Real acc, Real c, Real const* scalar, Real const* operand, Real* store) {
    store[0] = acc;
    return scalar[0] * acc + 3 * c + operand[0] - operand[1] + operand[2];
  }
};

template <int width>
using Epilogue =
    ExpressionEpilogue<Function, OperandFormat<float, true, true, width>,
                       FormatList<OperandFormat<float, false, true, width>, OperandFormat<f16, true, false>,
                                  OperandFormat<double, false, false>>,
                       FormatList<OperandFormat<float, true, true, width>>>;

constexpr GemmPolicy policy_of(EpilogueSchedule schedule, bool split = false) {
  GemmPolicy policy = small_policy(MainLoop::double_buffered, Multiply::fma, split);
  policy.epilogue = schedule;
  return policy;
}

template <GemmPolicy policy, class AnyEpilogue, int width>
using Gemm = GemmTraits<policy, StridedSource<float, Along::mn, 1>, StridedSource<float, Along::k, 1>, float,
                        AnyEpilogue, StridedDestination<float, width>>;

template <EpilogueSchedule schedule, int width, bool split>
void expect_expression(Size const& size, int splits) {
  Matrix<float> c(size.m, size.n, 1, Along::k, width, 0, 5), pre(size.m, size.n, 1, Along::k, width, 0, 6);
  Matrix<float> bias(1, size.n, 1, Along::k, width, 0, 7);
  Matrix<f16> row(size.m, 1, 1, Along::mn, 1, 0, 8);
  double scale = 0.5;
  typename Epilogue<width>::Arguments arguments;
  arguments.source = c.arguments();
  arguments.operands[0] = bias.arguments();
  arguments.operands[0].row_stride = 0;
  arguments.operands[1] = row.arguments();
  arguments.operands[1].column_stride = 0;
  arguments.operands[2].data = &scale;
  arguments.stores[0] = pre.arguments();
  arguments.scalars[0] = 2;
  std::vector<double> sums;
  expect_product<Gemm<policy_of(schedule, split), Epilogue<width>, width>>(
      size, {.splits = splits}, arguments, [&](double sum, int m, int n) {
        sums.push_back(sum);
        return 2 * sum + 3 * c.value(0, m, n) + bias.value(0, 0, n) - row.value(0, m, 0) + 0.5;
      });
  int wrong = 0;
  for (int m = 0; m < size.m; ++m)
    for (int n = 0; n < size.n; ++n)
      wrong += !(pre.value(0, m, n) == sums[static_cast<std::size_t>(m * size.n + n)]);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(pre.trespasses(size.m, size.n, 1), 0);
}

template <EpilogueSchedule schedule>
void expect_expressions() {
  for (Size const& size : {Size{37, 41, 9}, Size{1, 3, 2}, Size{64, 32, 16}}) {
    expect_expression<schedule, 4, false>(size, 1);
    expect_expression<schedule, 1, false>(size, 1);
    expect_expression<schedule, 2, true>(size, 2);
  }
}
TEST(EmulatedGemmEpilogue, ExpressionDirect) { expect_expressions<EpilogueSchedule::direct>(); }
TEST(EmulatedGemmEpilogue, ExpressionStaged) { expect_expressions<EpilogueSchedule::staged>(); }

struct BiasRelu {
  float const* bias;
  COSMATI_DEVICE float operator()(float sum, Index, Index n) const {
    float const x = sum + bias[n];
    return x > 0 ? x : 0;
  }
};

TEST(EmulatedGemmEpilogue, CallableWithState) {
  std::vector<float> bias(70);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 7) - 3;
  using Callable = CallableEpilogue<float, BiasRelu>;
  auto const right = [&](double sum, int, int n) {
    return std::max(0.0, sum + bias[static_cast<std::size_t>(n)]);
  };
  expect_product<Gemm<policy_of(EpilogueSchedule::direct), Callable, 2>>({40, 70, 11}, {}, {bias.data()},
                                                                         right);
  expect_product<Gemm<policy_of(EpilogueSchedule::staged), Callable, 2>>({40, 70, 11}, {}, {bias.data()},
                                                                         right);
}

TEST(EmulatedGemmEpilogue, StagedTakesEverySumType) {
  constexpr GemmPolicy halves = [] {
    GemmPolicy p = small_policy(MainLoop::multistage, Multiply::half2);
    p.epilogue = EpilogueSchedule::staged;
    return p;
  }();
  expect_product<PlainGemm<halves, f16, f16, Along::k, Along::mn, 4, f16, 8>>({33, 47, 21});
  constexpr GemmPolicy doubles = [] {
    GemmPolicy p = small_policy(MainLoop::double_buffered);
    p.epilogue = EpilogueSchedule::staged;
    return p;
  }();
  expect_product<PlainGemm<doubles, double, double, Along::k, Along::mn, 2, double, 2>>({33, 47, 21});
}

}  // namespace
}  // namespace cosmati::emulated
