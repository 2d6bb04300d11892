// Optimizer steps against hand-computed values.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/reference.h"
#include "tests/support/tensors.h"

namespace cosmati {
namespace {

using testing::tensor;
using testing::Values;
using testing::values_of;

OptimizerProblem problem_of(OptimizerKind kind, bool with_state) {
  OptimizerProblem problem;
  problem.kind = kind;
  problem.parameter = problem.gradient = describe(DataType::f64, {1});
  if (with_state) problem.state = problem.parameter;
  return problem;
}

TEST(ReferenceOptimizer, SgdWithWeightDecay) {
  Tensor parameter = tensor({1}, {10});
  Tensor const gradient = tensor({1}, {2});
  OptimizerProblem problem = problem_of(OptimizerKind::sgd, false);
  problem.weight_decay = 0.5;
  validate(problem);
  reference::run(problem, {.parameter = parameter.data(), .gradient = gradient.data(), .rate = 0.5});
  EXPECT_EQ(parameter.get(0), 10 - 0.5 * (2 + 0.5 * 10));
}

TEST(ReferenceOptimizer, MomentumAndNesterov) {
  for (bool const nesterov : {false, true}) {
    Tensor parameter = tensor({1}, {0}), velocity = tensor({1}, {0});
    Tensor const gradient = tensor({1}, {1});
    OptimizerProblem problem = problem_of(OptimizerKind::sgd, true);
    problem.momentum = 0.5;
    problem.nesterov = nesterov;
    validate(problem);
    OptimizerProblem::Arguments const arguments{
        .parameter = parameter.data(), .gradient = gradient.data(), .velocity = velocity.data(), .rate = 1};
    reference::run(problem, arguments);
    EXPECT_EQ(velocity.get(0), 1);
    EXPECT_EQ(parameter.get(0), nesterov ? -1.5 : -1);
    reference::run(problem, arguments);
    EXPECT_EQ(velocity.get(0), 1.5);
    EXPECT_EQ(parameter.get(0), nesterov ? -1.5 - 1.75 : -1 - 1.5);
  }
}

TEST(ReferenceOptimizer, AdamTwoSteps) {
  Tensor parameter = tensor({1}, {1}), first = tensor({1}, {0}), second = tensor({1}, {0});
  Tensor const gradient = tensor({1}, {4});
  OptimizerProblem problem = problem_of(OptimizerKind::adam, true);
  problem.beta1 = 0.5;
  problem.beta2 = 0.75;
  problem.epsilon = 1;
  validate(problem);
  OptimizerProblem::Arguments arguments{.parameter = parameter.data(),
                                        .gradient = gradient.data(),
                                        .velocity = first.data(),
                                        .second = second.data(),
                                        .rate = 0.5,
                                        .step = 1};
  reference::run(problem, arguments);  // corrected moments 4 and 16: 0.5 * 4 / (4 + 1)
  EXPECT_EQ(first.get(0), 2);
  EXPECT_EQ(second.get(0), 4);
  EXPECT_DOUBLE_EQ(parameter.get(0), 0.6);
  arguments.step = 2;
  reference::run(problem, arguments);  // a constant gradient has the same corrected moments
  EXPECT_EQ(first.get(0), 3);
  EXPECT_EQ(second.get(0), 7);
  EXPECT_DOUBLE_EQ(parameter.get(0), 0.2);
}

}  // namespace
}  // namespace cosmati
