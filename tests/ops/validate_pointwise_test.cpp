// Undefined problems are rejected with a message that contains the values and what is required: element-wise
// operations and losses.
#include <gtest/gtest.h>

#include <cmath>

#include "cosmati/ops/activation.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/optimizer.h"
#include "cosmati/ops/softmax.h"
#include "tests/support/refusal.h"

namespace cosmati {
namespace {

constexpr double nan = __builtin_nan("");
using testing::as_it_is;
using testing::f32_of;
using testing::refusal;

TEST(ValidateActivation, ShapesAndParameters) {
  ActivationProblem problem;
  problem.x = problem.y = f32_of({2, 3});
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem,
                    [](auto& p) {
                      p.y = f32_of({3, 2});
                    }),
            "activation forward: y is f32 (3, 2), x is f32 (2, 3); their shapes must be equal");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.direction = Direction::backward; }),
            "activation backward: dx is missing");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.alpha = nan; }),
            "activation forward: alpha is nan; it must be finite");
  EXPECT_EQ(parse_activation_function("gelu_tanh"), ActivationFunction::gelu_tanh);
  EXPECT_EQ(parse_activation_function("leaky-relu"), ActivationFunction::leaky_relu);
  try {
    parse_activation_function("reluu");
    FAIL();
  } catch (Error const& error) {
    EXPECT_STREQ(
        error.what(),
        "unknown activation function 'reluu' (did you mean relu?); valid functions: relu, leaky_relu, elu, "
        "sigmoid, tanh, scaled_tanh, "
        "gelu, gelu_tanh, silu");
  }
}

TEST(ValidateBatchNorm, ShapesAndEpsilon) {
  BatchNormProblem problem;
  problem.x = problem.y = f32_of({2, 3, 4});
  problem.statistics = f32_of({3});
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.statistics = f32_of({4}); }),
            "batch normalization inference: statistics (of scale, bias, mean and variance) is f32 (4); its "
            "shape must be (3)");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.epsilon = -1; }),
            "batch normalization inference: epsilon is -1; it must not be negative");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.slope = INFINITY; }),
            "batch normalization inference: slope is inf; it must be finite");
  auto const empty = [](BatchNormProblem& p) { p.x = p.y = f32_of({0, 3, 4}); };
  EXPECT_EQ(refusal(problem, empty), "");
  problem.mode = BatchNormMode::training;
  EXPECT_EQ(
      refusal(problem, empty),
      "batch normalization training: x is f32 (0, 3, 4): the mean over zero elements is undefined; every "
      "extent must be at least 1");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.x = p.y = f32_of({3}); }),
            "batch normalization training: x is f32 (3), of rank 1; its rank must be 2 to 5");
}

TEST(ValidateRowNorm, Groups) {
  RowNormProblem problem;
  problem.mode = RowNormMode::group;
  problem.groups = 3;
  problem.x = problem.y = f32_of({2, 6, 4});
  problem.weight = problem.bias = f32_of({6});
  problem.statistics = f32_of({2, 3});
  EXPECT_EQ(refusal(problem, as_it_is), "");
  for (Index const groups : {0, 4})
    EXPECT_EQ(refusal(problem, [&](auto& p) { p.groups = groups; }),
              "group normalization: groups is " + std::to_string(groups) +
                  "; it must be at least 1 and divide the 6 channels of x, f32 (2, 6, 4)");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.weight = f32_of({4}); }),
            "group normalization: weight is f32 (4); its shape must be (6)");
  EXPECT_EQ(refusal(problem,
                    [](auto& p) {
                      p.statistics = f32_of({2, 6});
                    }),
            "group normalization: statistics (of mean and inverse) is f32 (2, 6); its shape must be (2, 3)");
  EXPECT_NE(refusal(problem, [](auto& p) { p.x = p.y = f32_of({6}); }), "");
  EXPECT_NE(refusal(problem, [](auto& p) { p.x = p.y = f32_of({2, 6, 0}); }), "");
}

TEST(ValidateRowNorm, ShapesAndAxis) {
  RowNormProblem problem;
  problem.x = problem.y = f32_of({2, 3, 4});
  problem.weight = problem.bias = f32_of({3, 4});
  problem.statistics = f32_of({2, 1, 1});
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.weight = f32_of({4}); }),
            "layer normalization: weight is f32 (4); its shape must be (3, 4)");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.statistics = f32_of({2}); }),
            "layer normalization: statistics (of mean and inverse) is f32 (2); its shape must be (2, 1, 1)");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.axis = 3; }),
            "layer normalization: the axis is 3; x, f32 (2, 3, 4), is of rank 3; valid values: 0 to 2");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.epsilon = -1; }),
            "layer normalization: epsilon is -1; it must not be negative");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.mode = RowNormMode::rms; }),
            "RMS normalization: a bias is given; only layer normalization adds one");
  EXPECT_EQ(refusal(problem,
                    [](auto& p) {
                      p.x = p.y = f32_of({2, 0});
                      p.weight = p.bias = p.statistics = {};
                    }),
            "layer normalization: x is f32 (2, 0): the mean over zero elements is undefined; every extent "
            "starting at axis 1 must be at least 1");
  EXPECT_NE(refusal(problem, [](auto& p) { p.direction = Direction::backward; }), "");  // there is no dx
}

TEST(ValidateLrn, Size) {
  LrnProblem problem;
  problem.x = problem.y = f32_of({2, 3, 4});
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.size = 0; }),
            "local response normalization forward: size is 0; it must be at least 1 and below 2^31");
}

TEST(ValidateSoftmax, Axis) {
  SoftmaxProblem problem;
  problem.x = problem.y = f32_of({2, 3});
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.axis = 2; }),
            "softmax forward: the axis is 2; f32 (2, 3) is of rank 2; valid values: 0 to 1");
  EXPECT_NE(refusal(problem, [](auto& p) { p.axis = -1; }), "");
}

TEST(ValidateCrossEntropy, LabelsAndLoss) {
  CrossEntropyProblem problem;
  problem.x = f32_of({4, 10});
  problem.labels = describe(DataType::s32, {4});
  problem.loss = f32_of({1});
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.labels = describe(DataType::u8, {4}); }),
            "cross-entropy forward: labels is u8 (4); its type must be s32");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.labels = describe(DataType::s32, {5}); }),
            "cross-entropy forward: labels is s32 (5); its shape must be (4)");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.loss = f32_of({2}); }),
            "cross-entropy forward: loss is f32 (2); its shape must be (1)");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.direction = Direction::backward; }),
            "cross-entropy backward: dx is missing");
  EXPECT_EQ(refusal(problem,
                    [](auto& p) {
                      p.x = f32_of({0, 10});
                      p.labels = describe(DataType::s32, {0});
                    }),
            "cross-entropy forward: x is f32 (0, 10): the mean loss over zero rows is undefined; at least "
            "1 row is required");
}

TEST(ValidateRbf, WithAndWithoutLabels) {
  RbfProblem problem;
  problem.x = f32_of({4, 84});
  problem.centres = f32_of({10, 84});
  problem.distances = f32_of({4, 10});
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem,
                    [](auto& p) {
                      p.centres = f32_of({10, 80});
                    }),
            "rbf forward: centres is f32 (10, 80); its shape must be (10, 84)");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.distances = {}; }),
            "rbf forward: distances are missing; they are required without labels");
  problem.labels = describe(DataType::s32, {4});
  EXPECT_EQ(refusal(problem, as_it_is), "rbf forward: loss is missing");
  problem.loss = f32_of({1});
  EXPECT_EQ(refusal(problem, [](auto& p) { p.distances = {}; }), "");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.rubbish = nan; }),
            "rbf forward: rubbish is nan; it must be a number or infinity");
}

TEST(ValidateElementwise, ShapesAndProbability) {
  AddProblem const add{f32_of({2, 3}), f32_of({2, 3}), f32_of({2, 3})};
  EXPECT_EQ(refusal(add, as_it_is), "");
  EXPECT_EQ(refusal(add, [](auto& p) { p.b = f32_of({3}); }),
            "add: b is f32 (3), a is f32 (2, 3); their shapes must be equal");
  EXPECT_EQ(refusal(add, [](auto& p) { p.beta = __builtin_huge_val(); }),
            "add: beta is inf; it must be finite");
  DropoutProblem const dropout{f32_of({2}), f32_of({2})};
  EXPECT_EQ(refusal(dropout, [](auto& p) { p.probability = 1.5; }),
            "dropout: the probability is 1.5; it must be from 0 to 1");
  EXPECT_NE(refusal(dropout, [](auto& p) { p.probability = nan; }), "");
  EXPECT_EQ(refusal(TransformProblem{f32_of({2, 3}), f32_of({3, 2})}, as_it_is),
            "transform: y is f32 (3, 2), x is f32 (2, 3); their shapes must be equal");
}

TEST(ValidateReduce, Axes) {
  ReduceProblem const problem{ReduceOperation::mean, f32_of({2, 3, 4}), f32_of({1, 3, 1})};
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem,
                    [](auto& p) {
                      p.y = f32_of({1, 2, 1});
                    }),
            "reduce: x is f32 (2, 3, 4), y is f32 (1, 2, 1); extent 1 of y must be 1 or 3");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.y = f32_of({3}); }),
            "reduce: x is f32 (2, 3, 4), y is f32 (3); their ranks must be equal");
  EXPECT_EQ(
      refusal(problem,
              [](auto& p) {
                p.x = f32_of({0, 3, 4});
              }),
      "reduce: x is f32 (0, 3, 4): mean over zero elements is undefined; only sum and sum-of-squares are "
      "defined there");
  EXPECT_EQ(refusal(problem,
                    [](auto& p) {
                      p.x = f32_of({0, 3, 4});
                      p.operation = ReduceOperation::sum;
                    }),
            "");
  EXPECT_EQ(parse_reduce_operation("sum-of-squares"), ReduceOperation::sum_of_squares);
}

TEST(ValidateOptimizer, StateAndNumbers) {
  OptimizerProblem problem;
  problem.parameter = problem.gradient = f32_of({3});
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.momentum = 0.9; }),
            "sgd: state is missing: momentum 0.9 needs a velocity");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.gradient = f32_of({4}); }),
            "sgd: gradient is f32 (4), parameter is f32 (3); their shapes must be equal");
  problem.kind = OptimizerKind::adam;
  EXPECT_EQ(refusal(problem, as_it_is), "adam: state is missing: the two moments need a description");
  problem.state = problem.parameter;
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.beta2 = 1; }),
            "adam: beta2 is 1; it must be at least 0 and below 1");
}

}  // namespace
}  // namespace cosmati
