// The vectorized evaluator against the reference: each function on a dense set of values, random expressions,
// runs of every length, in place, from several threads, for every instruction set that this processor has.
#include "cosmati/epilogue/vector_program.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <thread>

#include "cosmati/epilogue/evaluate.h"
#include "cosmati/epilogue/parse.h"
#include "src/epilogue/apply.h"
#include "tests/epilogue/random_expression.h"

namespace cosmati::epilogue {
namespace {

std::vector<VectorLevel> levels() {
  std::vector<VectorLevel> result;
  for (VectorLevel level : {VectorLevel::baseline, VectorLevel::v3, VectorLevel::v4})
    if (level <= best_vector_level()) result.push_back(level);
  return result;
}

// Arrays for one run; operands that are constant along the run have stride 0.
template <class Real>
struct Data {
  explicit Data(Expression const& expression, std::size_t size, RandomExpression& random, double low = -3,
                double high = 3)
      : count(size), acc(size), c(size), result(size + 1, guard) {
    auto const fill = [&](std::vector<Real>& values) {
      for (Real& value : values) value = static_cast<Real>(random.number(low, high));
    };
    fill(acc);
    fill(c);
    scalars.resize(expression.scalars().size());
    fill(scalars);
    for (Operand const& operand : expression.operands()) {
      bool const along = operand.indices.back() == "n";
      arrays.emplace_back(along ? size : 1);
      fill(arrays.back());
      strides.push_back(along ? 1 : 0);
    }
    for (std::size_t i = 0; i < expression.stores().size(); ++i) stores.emplace_back(size + 1, guard);
  }

  void run(VectorProgram<Real> const& program) {
    std::vector<Stream<Real>> operands;
    for (std::size_t i = 0; i < arrays.size(); ++i) operands.push_back({arrays[i].data(), strides[i]});
    std::vector<Real*> outputs;
    for (auto& store : stores) outputs.push_back(store.data());
    VectorArguments<Real> const arguments{{acc.data(), 1},
                                          {c.data(), 1},
                                          scalars.data(),
                                          operands.data(),
                                          in_place ? acc.data() : result.data(),
                                          outputs.data()};
    std::vector<std::byte> scratch(program.scratch_bytes() + 1, std::byte{0xa5});
    program.run(static_cast<Index>(count), arguments, scratch.data() + 1);  // a misaligned address
  }

  double operand(std::size_t which, std::size_t i) const {
    return arrays[which][strides[which] == 0 ? 0 : i];
  }

  // The value of every node at element i, with each operation rounded to Real and then perturbed by up to
  // `noise`.
  std::vector<double> nodes_at(Expression const& e, std::size_t i, double noise,
                               RandomExpression& random) const {
    std::vector<double> value;
    auto const at = [&value](int node) { return node < 0 ? 0.0 : value[static_cast<std::size_t>(node)]; };
    for (Node const& node : e.nodes()) {
      auto const slot = static_cast<std::size_t>(node.slot);
      double moved = 0;
      switch (node.op) {
        case Op::constant: moved = static_cast<Real>(node.constant); break;
        case Op::accumulator: moved = acc[i]; break;
        case Op::source: moved = c[i]; break;
        case Op::scalar: moved = scalars[slot]; break;
        case Op::operand: moved = operand(slot, i); break;
        default:
          moved = apply(node.op, at(node.operand[0]), at(node.operand[1]), at(node.operand[2]));
          moved = static_cast<Real>(moved * (1 + noise * random.number(-1, 1)));
      }
      value.push_back(moved);
    }
    return value;
  }

  static constexpr Real guard = Real(12345);
  std::size_t count;
  bool in_place = false;
  std::vector<Real> acc, c, scalars, result;
  std::vector<std::vector<Real>> arrays, stores;
  std::vector<int> strides;
};

// |got - wanted| in units of the last place of a float of the magnitude of `wanted`.
double error_in_ulp(float got, double wanted) {
  if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) == std::isnan(got) ? 0 : 1e30;
  if (got == static_cast<float>(wanted)) return 0;
  auto const finite = [](double x) { return std::isinf(x) ? std::copysign(std::ldexp(1.0, 128), x) : x; };
  double const size = std::fabs(finite(wanted));
  int const exponent = size < std::ldexp(1.0, -126) ? -126 : std::ilogb(size);
  return std::fabs(finite(got) - finite(wanted)) / std::ldexp(1.0, exponent - 23);
}

class EpilogueFunctionAccuracy : public testing::TestWithParam<char const*> {};

TEST_P(EpilogueFunctionAccuracy, IsWithinFourUlpOverAllFloats) {
  Expression const e = parse(GetParam());
  constexpr std::size_t stretch = 4096;
  for (VectorLevel level : levels()) {
    VectorProgram<float> const program(e, level);
    std::vector<std::byte> scratch(program.scratch_bytes());
    std::vector<float> x(stretch), y(stretch);
    for (unsigned long long pattern = 0; pattern < 1ull << 32;) {
      for (float& value : x) {
        value = std::bit_cast<float>(static_cast<unsigned>(pattern & 0xffffffffu));
        pattern += 15013;
      }
      VectorArguments<float> arguments;
      arguments.accumulator = {x.data(), 1};
      arguments.result = y.data();
      program.run(stretch, arguments, scratch.data());
      for (std::size_t i = 0; i < stretch; ++i) {
        if (std::isinf(x[i])) continue;
        double const wanted = evaluate(e, {x[i], 0, {}, {}, {}});
        ASSERT_LE(error_in_ulp(y[i], wanted), 4) << x[i] << " gives " << y[i] << ", not " << wanted;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EpilogueFunctionAccuracy,
                         testing::Values("exp(acc)", "log(acc)", "tanh(acc)", "sigmoid(acc)", "silu(acc)",
                                         "erf(acc)", "normal_cdf(acc)", "gelu(acc)", "gelu_tanh(acc)",
                                         "elu(acc, 1)", "sqrt(acc)", "rsqrt(acc)", "round(acc)", "relu(acc)",
                                         "abs(acc)", "-acc", "pow(acc, 3)", "pow(acc, 0.3125)",
                                         "pow(acc, -7)", "pow(2.5, acc)", "pow(-2, acc)",
                                         "leaky_relu(acc, 0.25)"));

TEST(EpilogueVectorProgram, SpecialValuesAsInTheReference) {
  float const infinity = std::numeric_limits<float>::infinity();
  std::vector<float> const special = {
      0.0f,  -0.0f,  1.0f,     -1.0f,     0.5f,
      -2.0f, 3.0f,   2.5f,     1e-40f,    -1e-40f,
      3e38f, -3e38f, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> x, y;
  for (float a : special)
    for (float b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  for (char const* text : {"exp(acc)",          "log(acc)",
                           "tanh(acc)",         "sigmoid(acc)",
                           "silu(acc)",         "gelu(acc)",
                           "gelu_tanh(acc)",    "erf(acc)",
                           "round(acc)",        "relu(acc)",
                           "abs(acc)",          "sqrt(acc)",
                           "rsqrt(acc)",        "-acc",
                           "pow(acc, c)",       "min(acc, c)",
                           "max(acc, c)",       "clamp(acc, c, 2)",
                           "clamp(acc, -1, c)", "leaky_relu(acc, c)",
                           "elu(acc, 0.5)",     "select(acc, c, 7)",
                           "acc < c",           "acc <= c",
                           "acc > c",           "acc >= c",
                           "acc == c",          "acc != c",
                           "acc + c",           "acc * c"}) {
    Expression const e = parse(text);
    for (VectorLevel level : levels()) {
      VectorProgram<float> const program(e, level);
      std::vector<std::byte> scratch(program.scratch_bytes());
      std::vector<float> result(x.size());
      VectorArguments<float> const arguments{{x.data(), 1}, {y.data(), 1}, nullptr,
                                             nullptr,       result.data(), nullptr};
      program.run(static_cast<Index>(x.size()), arguments, scratch.data());
      for (std::size_t i = 0; i < x.size(); ++i) {
        double const wanted = evaluate(e, {x[i], y[i], {}, {}, {}});
        EXPECT_LE(error_in_ulp(result[i], wanted), 4)
            << text << " of " << x[i] << ", " << y[i] << " gives " << result[i] << ", not " << wanted;
      }
    }
  }
}

// The permitted difference follows from evaluations with every step slightly perturbed.
template <class Real>
void compare_random_expressions(unsigned seed, double noise) {
  RandomExpression random(seed);
  int tight = 0, all = 0;
  for (int round = 0; round < 400; ++round) {
    std::string const text = random.text();
    Expression const e = parse(text);
    for (VectorLevel level : levels()) {
      Data<Real> data(e, 37, random);
      data.run(VectorProgram<Real>(e, level));
      for (std::size_t i = 0; i < data.count; ++i) {
        std::vector<std::vector<double>> samples;
        for (int k = 0; k < 12; ++k) samples.push_back(data.nodes_at(e, i, k == 0 ? 0 : noise, random));
        auto const compare = [&](int node, Real got) {
          auto const at = static_cast<std::size_t>(node);
          double const wanted = samples[0][at];
          double spread = 0;
          for (auto const& sample : samples) {
            if (!std::isfinite(sample[at]) || !std::isfinite(wanted)) {
              if (std::isnan(sample[at]) != std::isnan(wanted) ||
                  std::isinf(sample[at]) != std::isinf(wanted))
                return;  // close to overflow or to the edge of a domain
            } else {
              spread = std::max(spread, std::fabs(sample[at] - wanted));
            }
          }
          ++all;
          if (spread <= 100 * noise * std::fabs(wanted)) ++tight;
          if (std::isnan(wanted)) {
            EXPECT_TRUE(std::isnan(got)) << text;
          } else if (std::isinf(wanted)) {
            EXPECT_EQ(got, static_cast<Real>(wanted)) << text;
          } else {
            double const bound = 8 * spread + noise * std::fabs(wanted) +
                                 16 * static_cast<double>(std::numeric_limits<Real>::denorm_min());
            EXPECT_LE(std::fabs(got - wanted), bound) << text << "\nwanted " << wanted << ", got " << got;
          }
        };
        compare(e.result(), data.result[i]);
        for (std::size_t k = 0; k < e.stores().size(); ++k) compare(e.stores()[k].node, data.stores[k][i]);
      }
      EXPECT_EQ(data.result[data.count], Data<Real>::guard) << text;
      for (auto const& store : data.stores) EXPECT_EQ(store[data.count], Data<Real>::guard) << text;
    }
  }
  EXPECT_GT(all, 10000);
  EXPECT_GT(tight, all / 2);
}

TEST(EpilogueVectorProgram, RandomExpressionsInFloat) { compare_random_expressions<float>(2, 4 * 1.2e-7); }
TEST(EpilogueVectorProgram, RandomExpressionsInDouble) { compare_random_expressions<double>(3, 4 * 2.3e-16); }

TEST(EpilogueVectorProgram, AnElementDoesNotDependOnItsPlaceInTheRun) {
  Expression const e = parse("store(p, silu(acc) * s[m]); gelu(alpha * acc + beta * c + bias[n]) + exp(acc)");
  RandomExpression random(4);
  for (VectorLevel level : levels()) {
    VectorProgram<float> const program(e, level);
    Data<float> whole(e, 700, random);
    whole.run(program);
    for (std::size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 511u, 530u, 699u}) {
      Data<float> part = whole;
      part.count = count;
      std::fill(part.result.begin(), part.result.end(), Data<float>::guard);
      part.run(program);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(part.result[i], whole.result[i]) << i << " of " << count;
      EXPECT_EQ(part.result[count], Data<float>::guard);
    }
  }
}

TEST(EpilogueVectorProgram, MayReplaceAnInput) {
  RandomExpression random(5);
  for (char const* text :
       {"acc", "relu(acc + bias[n])", "store(pre, acc); relu(acc)", "store(p, exp(acc)); acc + c",
        "let t = acc * c; store(p, t); t", "1 + 1", "bias[n]", "s * 2"}) {
    Expression const e = parse(text);
    VectorProgram<float> const program(e);
    Data<float> apart(e, 555, random);
    Data<float> together = apart;
    together.in_place = true;
    apart.run(program);
    together.run(program);
    for (std::size_t i = 0; i < apart.count; ++i) EXPECT_EQ(together.acc[i], apart.result[i]) << text;
    EXPECT_EQ(together.stores, apart.stores) << text;
  }
}

TEST(EpilogueVectorProgram, RunsFromManyThreads) {
  Expression const e = parse("gelu(alpha * acc + c) * s[m] + bias[n]");
  VectorProgram<float> const program(e);
  RandomExpression random(6);
  Data<float> const start(e, 1000, random);
  Data<float> expected = start;
  expected.run(program);
  std::vector<Data<float>> copies(4, start);
  std::vector<std::thread> threads;
  for (auto& copy : copies) threads.emplace_back([&copy, &program] { copy.run(program); });
  for (auto& thread : threads) thread.join();
  for (auto const& copy : copies) EXPECT_EQ(copy.result, expected.result);
}

TEST(EpilogueVectorProgram, RegistersAreUsedAgain) {
  std::string chain = "acc";
  for (int i = 0; i < 100; ++i) chain = "exp(" + chain + " - c)";
  EXPECT_LT(VectorProgram<float>(parse(chain)).scratch_bytes(), 32768u);
}

}  // namespace
}  // namespace cosmati::epilogue
