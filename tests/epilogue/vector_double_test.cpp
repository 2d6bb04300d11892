// The vectorized functions of double against the C++ library's of long double, for every instruction set that
// this processor has.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "cosmati/epilogue/evaluate.h"
#include "cosmati/epilogue/parse.h"
#include "cosmati/epilogue/vector_program.h"

namespace cosmati::epilogue {
namespace {

using Wide = long double;

struct Function {
  char const* text;
  Wide (*exact)(Wide x);
  double ulp = 4;
};

Wide sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide twice_u(Wide x) { return 1.59576912160573071176L * (x + 0.044715L * x * x * x); }

// The error of gelu_tanh is that of its exponent, which reaches 745 before the result becomes 0.
Function const functions[] = {
    {"exp(acc)", [](Wide x) { return std::exp(x); }},
    {"tanh(acc)", [](Wide x) { return std::tanh(x); }},
    {"sigmoid(acc)", [](Wide x) { return sigmoid(x); }},
    {"silu(acc)", [](Wide x) { return x * sigmoid(x); }},
    {"erf(acc)", [](Wide x) { return std::erf(x); }},
    {"normal_cdf(acc)", [](Wide x) { return std::erfc(-x / std::numbers::sqrt2_v<Wide>) / 2; }, 5},
    {"gelu(acc)", [](Wide x) { return x * std::erfc(-x / std::numbers::sqrt2_v<Wide>) / 2; }},
    {"gelu_tanh(acc)", [](Wide x) { return x * sigmoid(twice_u(x)); }, 2000},
    {"elu(acc, 1)", [](Wide x) { return x > 0 ? x : std::expm1(x); }},
};

double error_in_ulp(double got, Wide wanted) {
  if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) == std::isnan(got) ? 0 : 1e30;
  if (got == static_cast<double>(wanted)) return 0;
  auto const finite = [](Wide x) { return std::isinf(x) ? std::copysign(std::ldexp(1.0L, 1024), x) : x; };
  Wide const size = std::fabs(finite(wanted));
  int const exponent = size < std::numeric_limits<double>::min() ? -1022 : std::ilogb(size);
  return static_cast<double>(std::fabs(finite(got) - finite(wanted)) / std::ldexp(1.0L, exponent - 52));
}

// Numbers of all magnitudes and signs, with more of the larger ones, where functions vary.
std::vector<double> numbers(std::size_t count) {
  std::mt19937_64 random(11);
  std::vector<double> x = {0.0,    -0.0, 1.0,   -1.0,   0.625, -0.625, 20.0,  -38.5,
                           709.78, 710,  -745., -746.0, 1e300, -1e300, 5e-324};
  std::uniform_real_distribution<double> near(-3, 3), far(-50, 50), edge(-760, 720), power(-300, 3);
  while (x.size() < count) {
    x.insert(x.end(), {near(random), far(random), edge(random)});
    x.push_back(std::copysign(std::pow(10.0, power(random)), near(random)));
  }
  x.resize(count);
  return x;
}

TEST(EpilogueVectorDouble, FunctionsAreAsCloseAsTheyPromise) {
  constexpr std::size_t count = 40000;
  auto const x = numbers(count);
  std::vector<double> y(count);
  for (VectorLevel level : {VectorLevel::baseline, VectorLevel::v3, VectorLevel::v4}) {
    if (level > best_vector_level()) continue;
    for (Function const& function : functions) {
      VectorProgram<double> const program(parse(function.text), level);
      std::vector<std::byte> scratch(program.scratch_bytes());
      VectorArguments<double> arguments;
      arguments.accumulator = {x.data(), 1};
      arguments.result = y.data();
      program.run(count, arguments, scratch.data());
      double worst = 0;
      for (std::size_t i = 0; i < count; ++i) {
        double const error = error_in_ulp(y[i], function.exact(x[i]));
        worst = std::max(worst, error);
        ASSERT_LE(error, function.ulp) << function.text << " of " << x[i] << " gives " << y[i];
      }
      RecordProperty(function.text, std::to_string(worst));
    }
  }
}

TEST(EpilogueVectorDouble, InfinitiesAndNotANumberAreAsInTheReference) {
  double const infinity = std::numeric_limits<double>::infinity();
  std::vector<double> const x = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
  for (Function const& function : functions) {
    Expression const e = parse(function.text);
    VectorProgram<double> const program(e);
    std::vector<std::byte> scratch(program.scratch_bytes());
    std::vector<double> y(x.size());
    VectorArguments<double> arguments;
    arguments.accumulator = {x.data(), 1};
    arguments.result = y.data();
    program.run(static_cast<Index>(x.size()), arguments, scratch.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      double const wanted = evaluate(e, {x[i], 0, {}, {}, {}});
      EXPECT_TRUE(y[i] == wanted || (std::isnan(y[i]) && std::isnan(wanted)))
          << function.text << " of " << x[i] << " gives " << y[i] << ", not " << wanted;
    }
  }
}

}  // namespace
}  // namespace cosmati::epilogue
