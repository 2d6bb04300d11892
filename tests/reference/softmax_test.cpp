// Softmax and cross-entropy: hand-computed values, inputs far from zero, and gradients against central
// differences.
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
using testing::values_of;

SoftmaxProblem problem_of(Tensor const& x, Tensor const& y, int axis, bool logarithm) {
  SoftmaxProblem problem;
  problem.axis = axis;
  problem.logarithm = logarithm;
  problem.x = x.description();
  problem.y = y.description();
  return problem;
}

void forward(SoftmaxProblem const& problem, Tensor const& x, Tensor& y) {
  validate(problem);
  reference::run(problem, {.x = x.data(), .y = y.data()});
}

TEST(ReferenceSoftmax, ByHandAlongEitherAxis) {
  double const l2 = std::log(2.0), l3 = std::log(3.0);
  Tensor const x = tensor({2, 2}, {0, l2, l3, 0});
  Tensor y = poisoned({2, 2});
  forward(problem_of(x, y, 1, false), x, y);
  double const rows[] = {1.0 / 3, 2.0 / 3, 3.0 / 4, 1.0 / 4};
  for (Index i = 0; i < 4; ++i) EXPECT_NEAR(y.get(i), rows[i], 1e-15);
  forward(problem_of(x, y, 0, true), x, y);
  double const columns[] = {1.0 / 4, 2.0 / 3, 3.0 / 4, 1.0 / 3};
  for (Index i = 0; i < 4; ++i) EXPECT_NEAR(y.get(i), std::log(columns[i]), 1e-15);
}

TEST(ReferenceSoftmax, LargeValuesDoNotOverflow) {
  Tensor const x = tensor({1, 2}, {1e4, 1e4 - 1});
  Tensor y = poisoned({1, 2});
  forward(problem_of(x, y, 1, false), x, y);
  EXPECT_NEAR(y.get(0), 1 / (1 + std::exp(-1.0)), 1e-12);
  Tensor const far = tensor({1, 2}, {0, -2000});
  forward(problem_of(far, y, 1, true), far, y);
  EXPECT_EQ(y.get(1), -2000);
}

TEST(ReferenceSoftmax, Gradients) {
  for (unsigned seed = 0; seed < 16; ++seed) {
    Random random(seed);
    Shape const shape{random.between(1, 3), random.between(1, 4), random.between(1, 4)};
    Tensor x = random.tensor(shape, -3, 3), y = random.tensor(shape), dy = random.tensor(shape);
    Tensor dx(x.description());
    SoftmaxProblem problem = problem_of(x, y, static_cast<int>(random.between(0, 2)), seed % 2 == 1);
    auto const loss = [&] {
      problem.direction = Direction::forward;
      forward(problem, x, y);
      return testing::weighted_sum(dy, y);
    };
    loss();
    problem.direction = Direction::backward;
    problem.dy = dy.description();
    validate(problem);
    reference::run(problem, {.saved_y = y.data(), .dy = dy.data(), .dx = dx.data()});
    testing::expect_gradient("seed " + std::to_string(seed), x, dx, loss);
  }
}

CrossEntropyProblem loss_problem(Tensor const& x, Tensor const& labels, Tensor const& loss) {
  CrossEntropyProblem problem;
  problem.x = x.description();
  problem.labels = labels.description();
  problem.loss = loss.description();
  return problem;
}

TEST(ReferenceCrossEntropy, ByHand) {
  Tensor const x = tensor({2, 2}, {0, std::log(3.0), 5, 5});
  Tensor const labels = tensor({2}, {0, 1}, DataType::s32);
  Tensor loss = poisoned({1});
  CrossEntropyProblem const problem = loss_problem(x, labels, loss);
  validate(problem);
  reference::run(problem, {.x = x.data(), .labels = labels.data(), .loss = loss.data()});
  EXPECT_DOUBLE_EQ(loss.get(0), (std::log(4.0) + std::log(2.0)) / 2);
}

TEST(ReferenceCrossEntropy, GradientInEitherDirection) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    Random random(seed);
    Shape const shape{random.between(1, 5), random.between(1, 6)};
    Tensor x = random.tensor(shape, -5, 5), dx = random.tensor(shape), both = random.tensor(shape);
    Tensor labels(DataType::s32, {shape[0]}), value = poisoned({1});
    for (Index n = 0; n < shape[0]; ++n) labels.set(n, static_cast<double>(random.between(0, shape[1] - 1)));
    CrossEntropyProblem problem = loss_problem(x, labels, value);
    auto const loss = [&] {
      CrossEntropyProblem const only_loss = loss_problem(x, labels, value);
      validate(only_loss);
      reference::run(only_loss, {.x = x.data(), .labels = labels.data(), .loss = value.data()});
      return value.get(0);
    };
    problem.dx = both.description();
    validate(problem);
    reference::run(problem,
                   {.x = x.data(), .labels = labels.data(), .loss = value.data(), .dx = both.data()});
    problem.direction = Direction::backward;
    problem.dx = dx.description();
    validate(problem);
    reference::run(problem, {.x = x.data(), .labels = labels.data(), .dx = dx.data()});
    EXPECT_EQ(values_of(dx), values_of(both));
    testing::expect_gradient("seed " + std::to_string(seed), x, dx, loss);
  }
}

TEST(ReferenceCrossEntropy, LabelOutOfRangeThrowsBeforeAnythingIsWritten) {
  Tensor const x = tensor({2, 3}, {0, 0, 0, 0, 0, 0});
  for (double const wrong : {3.0, -1.0}) {
    Tensor const labels = tensor({2}, {0, wrong}, DataType::s32);
    Tensor loss = poisoned({1});
    try {
      reference::run(loss_problem(x, labels, loss),
                     {.x = x.data(), .labels = labels.data(), .loss = loss.data()});
      FAIL() << "label " << wrong << " was accepted";
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_request);
      EXPECT_NE(std::string(error.what()).find(wrong > 0 ? "label 1 is 3" : "label 1 is -1"),
                std::string::npos)
          << error.what();
    }
    EXPECT_EQ(loss.get(0), -77);
  }
}

}  // namespace
}  // namespace cosmati
