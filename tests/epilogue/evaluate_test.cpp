// The reference against formulas written out with the C++ library.
#include "cosmati/epilogue/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/error.h"

namespace cosmati::epilogue {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

double value(std::string_view text, double acc, double c = 0) {
  return evaluate(parse(text), {acc, c, {}, {}, {}});
}

TEST(EpilogueEvaluate, FunctionsAreTheirFormulas) {
  for (double x : {-30.0, -2.75, -1.0, -0.1, -1e-9, 0.0, 1e-9, 0.3, 1.0, 2.5, 30.0}) {
    auto const near = [x](char const* text, double wanted) {
      EXPECT_NEAR(value(text, x), wanted, 1e-14 * std::max(1.0, std::fabs(wanted))) << text << " at " << x;
    };
    near("-acc", -x);
    near("abs(acc)", std::fabs(x));
    near("exp(acc)", std::exp(x));
    near("tanh(acc)", std::tanh(x));
    near("erf(acc)", std::erf(x));
    near("normal_cdf(acc)", 0.5 * std::erfc(-x / std::sqrt(2.0)));
    near("sigmoid(acc)", 1 / (1 + std::exp(-x)));
    near("relu(acc)", x > 0 ? x : 0);
    near("leaky_relu(acc, 0.1)", x > 0 ? x : 0.1 * x);
    near("elu(acc, 1.5)", x > 0 ? x : 1.5 * (std::exp(x) - 1));
    near("gelu(acc)", x / 2 * (1 + std::erf(x / std::sqrt(2.0))));
    near("gelu_tanh(acc)",
         x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3)))));
    near("silu(acc)", x / (1 + std::exp(-x)));
    near("clamp(acc, -1, 2)", std::min(std::max(x, -1.0), 2.0));
    near("round(acc)", std::nearbyint(x));
    near("sqrt(abs(acc))", std::sqrt(std::fabs(x)));
    near("rsqrt(acc * acc + 1)", 1 / std::sqrt(x * x + 1));
    near("log(acc * acc + 1)", std::log(x * x + 1));
    near("pow(abs(acc), 1.5)", std::pow(std::fabs(x), 1.5));
    near("min(acc, 0.5) + max(acc, 0.25)", std::min(x, 0.5) + std::max(x, 0.25));
  }
}

TEST(EpilogueEvaluate, OperatorsAndSelection) {
  EXPECT_EQ(value("acc - c - 1", 10, 3), 6);
  EXPECT_EQ(value("acc / c / 2", 12, 3), 2);
  EXPECT_EQ(value("-acc * c", 2, 3), -6);
  EXPECT_EQ(value("(acc < c) + 10 * (acc <= c) + 100 * (acc > c) + 1000 * (acc >= c)", 2, 3), 11);
  EXPECT_EQ(value("(acc < c) + 10 * (acc <= c) + 100 * (acc > c) + 1000 * (acc >= c)", 3, 3), 1010);
  EXPECT_EQ(value("(acc == c) + 10 * (acc != c)", 3, 3), 1);
  EXPECT_EQ(value("select(acc > c, acc, c)", 2, 3), 3);
  EXPECT_EQ(value("select(acc, 5, 6)", -0.5), 5);
}

TEST(EpilogueEvaluate, TiesRoundToEven) {
  double const cases[][2] = {
      {0.5, 0},   {1.5, 2},   {2.5, 2},       {-0.5, -0.0},
      {-1.5, -2}, {-2.5, -2}, {1e300, 1e300}, {4503599627370495.5, 4503599627370496.0}};
  for (auto const& [x, wanted] : cases) {
    EXPECT_EQ(value("round(acc)", x), wanted);
    EXPECT_EQ(std::signbit(value("round(acc)", x)), std::signbit(wanted));
  }
}

TEST(EpilogueEvaluate, NanPropagates) {
  for (char const* text : {"relu(acc)",
                           "leaky_relu(acc, 0.1)",
                           "elu(acc, 1)",
                           "min(acc, 1)",
                           "min(1, acc)",
                           "max(acc, 1)",
                           "max(1, acc)",
                           "clamp(acc, 0, 1)",
                           "clamp(0.5, acc, 1)",
                           "clamp(0.5, 0, acc)",
                           "abs(acc)",
                           "round(acc)",
                           "gelu(acc)",
                           "gelu_tanh(acc)",
                           "silu(acc)",
                           "sigmoid(acc)",
                           "tanh(acc)",
                           "exp(acc)",
                           "log(acc)",
                           "erf(acc)",
                           "sqrt(acc)",
                           "rsqrt(acc)",
                           "pow(acc, 2)",
                           "pow(2, acc)",
                           "-acc",
                           "acc * 0"})
    EXPECT_TRUE(std::isnan(value(text, nan))) << text;
  EXPECT_EQ(value("acc < 1", nan), 0);
  EXPECT_EQ(value("acc != acc", nan), 1);
  EXPECT_EQ(value("select(acc, 5, 6)", nan), 5);
  EXPECT_EQ(value("pow(acc, 0)", nan), 1);
  EXPECT_EQ(value("relu(acc)", infinity), infinity);
  EXPECT_EQ(value("relu(acc)", -infinity), 0);
}

TEST(EpilogueEvaluate, ReadsSlotsAndWritesStores) {
  Expression const e =
      parse("let t = alpha * acc + bias[n]; store(pre, t); store(twice, 2 * t); t * w[m, n] + beta");
  double const scalars[] = {2, 100}, operands[] = {5, 10};
  double stores[2] = {};
  EXPECT_EQ(evaluate(e, {3, 0, scalars, operands, stores}), 210);
  EXPECT_EQ(stores[0], 11);
  EXPECT_EQ(stores[1], 22);
  EXPECT_THROW(evaluate(e, {3, 0, {}, operands, stores}), Error);
  EXPECT_THROW(evaluate(e, {3, 0, scalars, {}, stores}), Error);
  EXPECT_THROW(evaluate(e, {3, 0, scalars, operands, {}}), Error);
}

}  // namespace
}  // namespace cosmati::epilogue
