// Activation functions: hand-computed values, edge cases, and derivatives against central differences.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/reference.h"
#include "tests/support/gradient_check.h"
#include "tests/support/random.h"
#include "tests/support/tensors.h"

namespace cosmati {
namespace {

using testing::poisoned;
using testing::Random;
using testing::tensor;

ActivationProblem problem_of(ActivationFunction function, TensorDescription const& x) {
  ActivationProblem problem;
  problem.function = function;
  problem.alpha = default_alpha(function);
  problem.beta = default_beta(function);
  problem.x = problem.y = problem.dx = x;
  return problem;
}

double value(ActivationFunction function, double at) {
  Tensor const x = tensor({1}, {at});
  Tensor y = poisoned({1});
  ActivationProblem const problem = problem_of(function, x.description());
  validate(problem);
  reference::run(problem, {.x = x.data(), .y = y.data()});
  return y.get(0);
}

double derivative(ActivationFunction function, double at, double dy = 1) {
  Tensor const x = tensor({1}, {at}), given = tensor({1}, {dy});
  Tensor dx = poisoned({1});
  ActivationProblem problem = problem_of(function, x.description());
  problem.direction = Direction::backward;
  validate(problem);
  reference::run(problem, {.x = x.data(), .dy = given.data(), .dx = dx.data()});
  return dx.get(0);
}

TEST(ReferenceActivation, KnownValues) {
  EXPECT_EQ(value(ActivationFunction::relu, -3), 0);
  EXPECT_EQ(value(ActivationFunction::relu, 3), 3);
  EXPECT_DOUBLE_EQ(value(ActivationFunction::leaky_relu, -3), -0.03);
  EXPECT_DOUBLE_EQ(value(ActivationFunction::elu, -1), std::exp(-1.0) - 1);
  EXPECT_EQ(value(ActivationFunction::elu, 2), 2);
  EXPECT_EQ(value(ActivationFunction::sigmoid, 0), 0.5);
  EXPECT_DOUBLE_EQ(value(ActivationFunction::sigmoid, 2), 0.88079707797788243);
  EXPECT_DOUBLE_EQ(value(ActivationFunction::tanh, 0.5), 0.46211715726000976);
  EXPECT_NEAR(value(ActivationFunction::scaled_tanh, 1), 1, 1e-4);  // LeCun's choice: f(1) = 1
  EXPECT_DOUBLE_EQ(value(ActivationFunction::gelu, 1), 0.84134474606854293);
  EXPECT_NEAR(value(ActivationFunction::gelu_tanh, 1), 0.84119199, 1e-8);
  EXPECT_DOUBLE_EQ(value(ActivationFunction::silu, 2), 2 * 0.88079707797788243);
}

TEST(ReferenceActivation, FarFromZero) {
  EXPECT_EQ(value(ActivationFunction::sigmoid, -1e4), 0);
  EXPECT_EQ(value(ActivationFunction::sigmoid, 1e4), 1);
  EXPECT_EQ(value(ActivationFunction::silu, -1e4), 0);
  EXPECT_EQ(value(ActivationFunction::gelu, -1e4), 0);
  EXPECT_EQ(value(ActivationFunction::gelu, 1e4), 1e4);
  EXPECT_LT(value(ActivationFunction::gelu, -20), 0);  // keeps its relative accuracy
  EXPECT_EQ(derivative(ActivationFunction::tanh, 1e4), 0);
  EXPECT_EQ(derivative(ActivationFunction::sigmoid, -1e4), 0);
}

TEST(ReferenceActivation, DerivativeAtZero) {
  EXPECT_EQ(derivative(ActivationFunction::relu, 0, 5), 0);
  EXPECT_EQ(derivative(ActivationFunction::leaky_relu, 0, 5), 0.05);
  EXPECT_EQ(derivative(ActivationFunction::elu, 0, 5), 5);
}

TEST(ReferenceActivation, NanStaysNan) {
  for (int i = 0; i < activation_function_count; ++i) {
    auto const function = static_cast<ActivationFunction>(i);
    EXPECT_TRUE(std::isnan(value(function, __builtin_nan("")))) << name_of(function);
    EXPECT_TRUE(std::isnan(derivative(function, __builtin_nan("")))) << name_of(function);
  }
}

TEST(ReferenceActivation, DerivativesOfAll) {
  for (int i = 0; i < activation_function_count; ++i)
    for (double const alpha : {0.0, 0.7}) {  // 0 selects the default parameters
      auto const function = static_cast<ActivationFunction>(i);
      Random random(static_cast<unsigned>(i));
      Tensor x = random.tensor({2, 3, 7}, -4, 4), y = random.tensor(x.shape()), dx = random.tensor(x.shape());
      Tensor const dy = random.tensor(x.shape());
      for (Index j = 0; j < x.size(); ++j)
        if (std::fabs(x.get(j)) < 0.01) x.set(j, 0.5);  // relu has no derivative at 0
      ActivationProblem problem = problem_of(function, x.description());
      if (alpha != 0) problem.alpha = alpha;
      auto const loss = [&] {
        problem.direction = Direction::forward;
        problem.y = y.description();
        validate(problem);
        reference::run(problem, {.x = x.data(), .y = y.data()});
        return testing::weighted_sum(dy, y);
      };
      problem.direction = Direction::backward;
      problem.y = dy.description();
      problem.dx = dx.description();
      validate(problem);
      reference::run(problem, {.x = x.data(), .dy = dy.data(), .dx = dx.data()});
      testing::expect_gradient(name_of(function), x, dx, loss);
    }
}

TEST(ReferenceActivation, InPlace) {
  Tensor x = tensor({2}, {-1, 2});
  reference::run(problem_of(ActivationFunction::relu, x.description()), {.x = x.data(), .y = x.data()});
  EXPECT_EQ(testing::values_of(x), (testing::Values{0, 2}));
}

}  // namespace
}  // namespace cosmati
