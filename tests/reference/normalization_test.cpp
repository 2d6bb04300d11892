// Batch, layer, RMS, group and local response normalization, against hand-computed values and central
// differences.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/reference.h"
#include "tests/support/gradient_check.h"
#include "tests/support/random.h"
#include "tests/support/tensors.h"

namespace cosmati {
namespace {

using testing::poisoned;
using testing::Random;
using testing::tensor;
using testing::Values;
using testing::values_of;

TEST(ReferenceBatchNorm, InferenceByHand) {
  Tensor const x = tensor({2, 2, 1}, {1, 2, 3, 4}), scale = tensor({2}, {2, 3}), bias = tensor({2}, {10, 20});
  Tensor const mean = tensor({2}, {1, 2}), variance = tensor({2}, {3, 0});
  Tensor y = poisoned(x.shape());
  BatchNormProblem problem;
  problem.x = x.description();
  problem.y = y.description();
  problem.statistics = scale.description();
  problem.epsilon = 1;
  validate(problem);
  reference::run(problem, {.x = x.data(),
                           .scale = scale.data(),
                           .bias = bias.data(),
                           .mean = mean.data(),
                           .variance = variance.data(),
                           .y = y.data()});
  EXPECT_EQ(values_of(y), (Values{10, 20, 12, 26}));
}

TEST(ReferenceBatchNorm, TrainingByHand) {
  Tensor const x = tensor({2, 1, 2}, {1, 3, 5, 7}), scale = tensor({1}, {3}), bias = tensor({1}, {1});
  Tensor y = poisoned(x.shape()), mean = poisoned({1}), variance = poisoned({1});
  BatchNormProblem problem;
  problem.mode = BatchNormMode::training;
  problem.x = x.description();
  problem.y = y.description();
  problem.statistics = scale.description();
  problem.epsilon = 4;
  auto const run = [&] {
    validate(problem);
    reference::run(problem, {.x = x.data(),
                             .scale = scale.data(),
                             .bias = bias.data(),
                             .y = y.data(),
                             .saved_mean = mean.data(),
                             .saved_variance = variance.data()});
  };
  run();
  EXPECT_EQ(mean.get(0), 4);
  EXPECT_EQ(variance.get(0), 5);  // population variance: 20 / 4
  EXPECT_EQ(values_of(y), (Values{-2, 0, 2, 4}));
  problem.slope = 0.5;
  run();
  EXPECT_EQ(values_of(y), (Values{-1, 0, 2, 4}));
}

// z = x: at 0 and NaN what relu and leaky_relu give, and infinities.
TEST(ReferenceBatchNorm, ActivationByHand) {
  double const infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Tensor const x = tensor({6, 1}, {-2, 0, 3, nan, infinity, -infinity});
  Tensor const dy = tensor({6, 1}, {1, 2, 4, 8, 16, 32});
  Tensor const one = tensor({1}, {1}), zero = tensor({1}, {0});
  BatchNormProblem problem;
  problem.x = problem.y = x.description();
  problem.statistics = one.description();
  problem.epsilon = 0;
  for (double const slope : {0.0, 0.5}) {
    Tensor y = poisoned(x.shape()), dx = poisoned(x.shape()), dscale = poisoned({1}), dbias = poisoned({1});
    problem.mode = BatchNormMode::inference;
    problem.slope = slope;
    problem.dx = {};
    BatchNormProblem::Arguments arguments{.x = x.data(),
                                          .dy = dy.data(),
                                          .scale = one.data(),
                                          .bias = zero.data(),
                                          .mean = zero.data(),
                                          .variance = one.data(),
                                          .y = y.data(),
                                          .dx = dx.data(),
                                          .dscale = dscale.data(),
                                          .dbias = dbias.data()};
    reference::run(problem, arguments);
    EXPECT_EQ(y.get(0), -2 * slope);
    EXPECT_EQ(y.get(1), 0);
    EXPECT_EQ(y.get(2), 3);
    EXPECT_TRUE(std::isnan(y.get(3)));
    EXPECT_EQ(y.get(4), infinity);
    EXPECT_EQ(y.get(5), slope == 0 ? 0 : -infinity);
    problem.mode = BatchNormMode::backward;
    problem.dx = x.description();
    validate(problem);
    reference::run(problem, arguments);
    EXPECT_TRUE(std::isnan(dbias.get(0)) && std::isnan(dscale.get(0)));
  }
  // Sums without the NaN and the infinities.
  Tensor const part = tensor({3, 1}, {-2, 0, 3});
  Tensor dx = poisoned(part.shape()), dscale = poisoned({1}), dbias = poisoned({1});
  problem.x = problem.y = problem.dx = part.description();
  reference::run(problem, {.x = part.data(),
                           .dy = dy.data(),
                           .scale = one.data(),
                           .bias = zero.data(),
                           .mean = zero.data(),
                           .variance = one.data(),
                           .dx = dx.data(),
                           .dscale = dscale.data(),
                           .dbias = dbias.data()});
  EXPECT_EQ(dbias.get(0), 0.5 * 1 + 0.5 * 2 + 4);
  EXPECT_EQ(dscale.get(0), 0.5 * 1 * -2 + 4 * 3);
}

TEST(ReferenceBatchNorm, GradientsOfTraining) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    Random random(seed);
    int const rank = static_cast<int>(random.between(2, 5));
    Shape shape;
    shape.rank = rank;
    for (int d = 0; d < rank; ++d) shape[d] = random.between(1, 3);
    shape[0] += 1;  // a single value has no variance
    Shape const channels{shape[1]};
    Tensor x = random.tensor(shape, -2, 2), y = random.tensor(shape), dx = random.tensor(shape);
    Tensor const dy = random.tensor(shape);
    Tensor scale = random.tensor(channels), bias(scale.description());
    for (Index c = 0; c < shape[1]; ++c) bias.set(c, random.uniform(-1, 1));
    Tensor mean(scale.description()), variance(scale.description());
    Tensor dscale(scale.description()), dbias(scale.description());
    BatchNormProblem problem;
    problem.x = x.description();
    problem.statistics = scale.description();
    problem.epsilon = 0.1;
    problem.slope = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 0 : 0.2;
    auto const loss = [&] {
      problem.mode = BatchNormMode::training;
      problem.y = y.description();
      validate(problem);
      reference::run(problem, {.x = x.data(),
                               .scale = scale.data(),
                               .bias = bias.data(),
                               .y = y.data(),
                               .saved_mean = mean.data(),
                               .saved_variance = variance.data()});
      return testing::weighted_sum(dy, y);
    };
    loss();
    problem.mode = BatchNormMode::backward;
    problem.y = dy.description();
    problem.dx = dx.description();
    validate(problem);
    reference::run(problem, {.x = x.data(),
                             .dy = dy.data(),
                             .scale = scale.data(),
                             .bias = bias.data(),
                             .mean = mean.data(),
                             .variance = variance.data(),
                             .dx = dx.data(),
                             .dscale = dscale.data(),
                             .dbias = dbias.data()});
    std::string const name = "seed " + std::to_string(seed);
    testing::expect_gradient(name + " dx", x, dx, loss);
    testing::expect_gradient(name + " dscale", scale, dscale, loss);
    testing::expect_gradient(name + " dbias", bias, dbias, loss);
  }
}

TEST(ReferenceRowNorm, ByHand) {
  Tensor const x = tensor({2, 2}, {1, 3, 2, 10}), weight = tensor({2}, {2, 3}), bias = tensor({2}, {10, 20});
  Tensor y = poisoned(x.shape()), mean = poisoned({2, 1}), inverse = poisoned({2, 1});
  RowNormProblem problem;
  problem.x = x.description();
  problem.y = y.description();
  problem.weight = problem.bias = weight.description();
  problem.statistics = mean.description();
  problem.epsilon = 8;  // variances 1 and 16
  validate(problem);
  RowNormProblem::Arguments arguments{.x = x.data(),
                                      .weight = weight.data(),
                                      .bias = bias.data(),
                                      .y = y.data(),
                                      .saved_mean = mean.data(),
                                      .saved_inverse = inverse.data()};
  reference::run(problem, arguments);
  EXPECT_EQ(values_of(mean), (Values{2, 6}));
  EXPECT_DOUBLE_EQ(inverse.get(0), 1.0 / 3);
  EXPECT_DOUBLE_EQ(y.get(0), 10 - 2.0 / 3);
  EXPECT_DOUBLE_EQ(y.get(1), 21);
  problem.mode = RowNormMode::rms;
  problem.bias = {};
  problem.epsilon = 20;  // mean squares 5 and 52
  reference::run(problem, arguments);
  EXPECT_DOUBLE_EQ(inverse.get(0), 0.2);
  EXPECT_DOUBLE_EQ(y.get(1), 3 * 0.2 * 3);
}

TEST(ReferenceRowNorm, OfGroupsByHand) {
  Tensor const x = tensor({2, 4, 1}, {1, 3, 2, 10, 5, 5, 0, 4}), weight = tensor({4}, {2, 3, 4, 5}),
               bias = tensor({4}, {10, 20, 30, 40});
  Tensor y = poisoned(x.shape()), mean = poisoned({2, 2}), inverse = poisoned({2, 2});
  RowNormProblem problem;
  problem.mode = RowNormMode::group;
  problem.groups = 2;
  problem.x = x.description();
  problem.y = y.description();
  problem.weight = problem.bias = weight.description();
  problem.statistics = mean.description();
  problem.epsilon = 9;  // variances 1, 16, 0, 4
  validate(problem);
  reference::run(problem, {.x = x.data(),
                           .weight = weight.data(),
                           .bias = bias.data(),
                           .y = y.data(),
                           .saved_mean = mean.data(),
                           .saved_inverse = inverse.data()});
  EXPECT_EQ(values_of(mean), (Values{2, 6, 5, 2}));
  EXPECT_DOUBLE_EQ(inverse.get(1), 0.2);
  EXPECT_DOUBLE_EQ(inverse.get(2), 1.0 / 3);
  EXPECT_DOUBLE_EQ(y.get(0), 10 - 2 / std::sqrt(10.0));
  EXPECT_DOUBLE_EQ(y.get(3), 5 * 0.2 * 4 + 40);
  EXPECT_DOUBLE_EQ(y.get(4), 10);
  EXPECT_DOUBLE_EQ(y.get(6), 30 - 4 * 2 / std::sqrt(13.0));
}

TEST(ReferenceRowNorm, Gradients) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    Random random(seed);
    bool const grouped = seed >= 16;
    Index const groups = random.between(1, 3);
    Shape const shape{random.between(1, 3), grouped ? groups * random.between(1, 2) : random.between(1, 3),
                      random.between(2, 4)};
    RowNormProblem problem;
    problem.mode = grouped ? RowNormMode::group : seed % 2 == 0 ? RowNormMode::layer : RowNormMode::rms;
    problem.groups = grouped ? groups : 1;
    problem.axis = static_cast<int>(random.between(0, 2));
    problem.epsilon = 0.1;
    Shape parameters, rows = shape;
    for (int d = problem.axis; d < 3; ++d) {
      parameters[parameters.rank++] = shape[d];
      rows[d] = 1;
    }
    if (grouped) {
      parameters = {shape[1]};
      rows = {shape[0], groups};
    }
    Tensor x = random.tensor(shape, -2, 2), y = random.tensor(shape), dx = random.tensor(shape);
    Tensor const dy = random.tensor(shape);
    Tensor weight = random.tensor(parameters), bias = random.tensor(parameters);
    Tensor dweight(DataType::f64, parameters), dbias(DataType::f64, parameters);
    Tensor mean(DataType::f64, rows), inverse(DataType::f64, rows);
    bool const layer = problem.centered();
    problem.x = x.description();
    problem.weight = weight.description();
    problem.statistics = mean.description();
    RowNormProblem::Arguments const arguments{.x = x.data(),
                                              .dy = dy.data(),
                                              .weight = weight.data(),
                                              .bias = bias.data(),
                                              .mean = mean.data(),
                                              .inverse = inverse.data(),
                                              .y = y.data(),
                                              .saved_mean = mean.data(),
                                              .saved_inverse = inverse.data(),
                                              .dx = dx.data(),
                                              .dweight = dweight.data(),
                                              .dbias = dbias.data()};
    auto const loss = [&] {
      RowNormProblem forward = problem;
      forward.y = y.description();
      if (layer) forward.bias = bias.description();
      validate(forward);
      reference::run(forward, arguments);
      return testing::weighted_sum(dy, y);
    };
    loss();
    RowNormProblem backward = problem;
    backward.direction = Direction::backward;
    backward.y = dy.description();
    backward.dx = dx.description();
    backward.dweight = dweight.description();
    if (layer) backward.dbias = dbias.description();
    validate(backward);
    reference::run(backward, arguments);
    std::string const name = "seed " + std::to_string(seed);
    testing::expect_gradient(name + " dx", x, dx, loss);
    testing::expect_gradient(name + " dweight", weight, dweight, loss);
    if (layer) testing::expect_gradient(name + " dbias", bias, dbias, loss);
  }
}

TEST(ReferenceLrn, ByHand) {
  Tensor const x = tensor({1, 4}, {1, 2, 3, 4});
  Tensor y = poisoned(x.shape());
  LrnProblem problem;
  problem.x = x.description();
  problem.y = y.description();
  problem.size = 4;  // one channel below, two above
  problem.alpha = 4;
  problem.beta = 1;
  problem.k = 1;
  validate(problem);
  reference::run(problem, {.x = x.data(), .y = y.data()});
  EXPECT_DOUBLE_EQ(y.get(0), 1.0 / (1 + 1 + 4 + 9));
  EXPECT_DOUBLE_EQ(y.get(1), 2.0 / (1 + 1 + 4 + 9 + 16));
  EXPECT_DOUBLE_EQ(y.get(2), 3.0 / (1 + 4 + 9 + 16));
  EXPECT_DOUBLE_EQ(y.get(3), 4.0 / (1 + 9 + 16));
}

TEST(ReferenceLrn, Gradients) {
  for (unsigned seed = 0; seed < 16; ++seed) {
    Random random(seed);
    Shape const shape{random.between(1, 2), random.between(1, 7), random.between(1, 3)};
    Tensor x = random.tensor(shape, -2, 2), y = random.tensor(shape), dx = random.tensor(shape);
    Tensor const dy = random.tensor(shape);
    LrnProblem problem;
    problem.x = x.description();
    problem.size = random.between(1, 6);
    problem.alpha = random.uniform(0.1, 2);
    problem.beta = random.uniform(0.3, 1.5);
    problem.k = random.uniform(0.5, 2);
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
    testing::expect_gradient("seed " + std::to_string(seed), x, dx, loss);
  }
}

}  // namespace
}  // namespace cosmati
