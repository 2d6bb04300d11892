// Add, dropout, transform and reduce against hand-computed values.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/reference.h"
#include "tests/support/random.h"
#include "tests/support/tensors.h"

namespace cosmati {
namespace {

using testing::poisoned;
using testing::Random;
using testing::tensor;
using testing::Values;
using testing::values_of;

TEST(ReferenceAdd, OneAndTwoTerms) {
  Tensor const a = tensor({3}, {1, 2, 3}), b = tensor({3}, {10, 20, 30});
  Tensor y = poisoned({3}, DataType::s8);
  AddProblem problem;
  problem.a = a.description();
  problem.y = y.description();
  problem.alpha = 0.5;
  validate(problem);
  reference::run(problem, {.a = a.data(), .y = y.data()});
  EXPECT_EQ(values_of(y), (Values{0, 1, 2}));  // ties to even
  problem.b = b.description();
  problem.beta = 10;
  validate(problem);
  reference::run(problem, {.a = a.data(), .b = b.data(), .y = y.data()});
  EXPECT_EQ(values_of(y), (Values{100, 127, 127}));  // saturated
}

DropoutProblem dropout(Tensor const& x, Tensor const& y, double probability) {
  DropoutProblem problem;
  problem.x = x.description();
  problem.y = y.description();
  problem.probability = probability;
  problem.seed = 42;
  validate(problem);
  return problem;
}

TEST(ReferenceDropout, KeepsTheExpectedShareAndScalesIt) {
  Tensor x(DataType::f64, {100, 1000});
  x.fill(3);
  Tensor y = poisoned(x.shape());
  reference::run(dropout(x, y, 0.25), {.x = x.data(), .y = y.data()});
  Index kept = 0;
  for (double value : values_of(y)) {
    ASSERT_TRUE(value == 0 || value == 4) << value;
    kept += value == 4 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(kept), 75000, 5 * std::sqrt(100000 * 0.25 * 0.75));
}

TEST(ReferenceDropout, TheMaskBelongsToSeedStepAndIndex) {
  Random random(1);
  Tensor x = random.tensor({5, 7, 3}, 1, 2);
  Tensor y = poisoned(x.shape()), again(describe(DataType::f64, random.layout(x.shape())));
  DropoutProblem problem = dropout(x, y, 0.5);
  reference::run(problem, {.x = x.data(), .y = y.data(), .step = 3});
  reference::run(dropout(x, again, 0.5), {.x = x.data(), .y = again.data(), .step = 3});
  EXPECT_EQ(values_of(again), values_of(y));
  Tensor other = poisoned(x.shape());
  reference::run(problem, {.x = x.data(), .y = other.data(), .step = 4});
  EXPECT_NE(values_of(other), values_of(y));
  problem.seed = 43;
  reference::run(problem, {.x = x.data(), .y = other.data(), .step = 3});
  EXPECT_NE(values_of(other), values_of(y));
}

TEST(ReferenceDropout, ExtremeProbabilities) {
  Tensor const x = tensor({4}, {1, 2, 3, 4});
  Tensor y = poisoned({4});
  reference::run(dropout(x, y, 0), {.x = x.data(), .y = y.data()});
  EXPECT_EQ(values_of(y), values_of(x));
  reference::run(dropout(x, y, 1), {.x = x.data(), .y = y.data()});
  EXPECT_EQ(values_of(y), Values(4, 0.0));
}

TEST(ReferenceTransform, LayoutAndType) {
  Tensor const x = tensor({1, 2, 1, 3}, {1.5, 2.5, 300, -1, 0, __builtin_nan("")}, DataType::f32);
  Tensor y(describe(DataType::u8, image_layout(TensorFormat::nhwc, 1, 2, 1, 3)));
  TransformProblem const problem{x.description(), y.description()};
  validate(problem);
  reference::run(problem, {.x = x.data(), .y = y.data()});
  EXPECT_EQ(values_of(y), (Values{2, 2, 255, 0, 0, 0}));
  EXPECT_EQ(y.as<u8>()[2], 2);  // element (0, 0, 0, 1); channels are innermost
}

double reduced(ReduceOperation operation, Tensor const& x) {
  Tensor y = poisoned({1, 1});
  ReduceProblem const problem{operation, x.description(), y.description()};
  validate(problem);
  reference::run(problem, {.x = x.data(), .y = y.data()});
  return y.get(0);
}

TEST(ReferenceReduce, EveryOperation) {
  Tensor const x = tensor({2, 2}, {-4, 1, 2, 3});
  EXPECT_EQ(reduced(ReduceOperation::sum, x), 2);
  EXPECT_EQ(reduced(ReduceOperation::mean, x), 0.5);
  EXPECT_EQ(reduced(ReduceOperation::max, x), 3);
  EXPECT_EQ(reduced(ReduceOperation::min, x), -4);
  EXPECT_EQ(reduced(ReduceOperation::sum_of_squares, x), 30);
  Tensor const with_nan = tensor({2, 2}, {1, __builtin_nan(""), 5, -5});
  EXPECT_TRUE(std::isnan(reduced(ReduceOperation::max, with_nan)));
  EXPECT_TRUE(std::isnan(reduced(ReduceOperation::min, with_nan)));
  EXPECT_EQ(reduced(ReduceOperation::sum, Tensor(DataType::f32, {0, 3})), 0);
}

TEST(ReferenceReduce, AnyAxes) {
  Tensor const x = tensor({2, 2, 3}, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60});
  Tensor channels = poisoned({1, 2, 1}), rows = poisoned({2, 1, 3}), all = poisoned({2, 2, 3});
  auto const sum = [&](Tensor& y) {
    ReduceProblem const problem{ReduceOperation::sum, x.description(), y.description()};
    validate(problem);
    reference::run(problem, {.x = x.data(), .y = y.data()});
  };
  sum(channels);
  EXPECT_EQ(values_of(channels), (Values{66, 165}));
  sum(rows);
  EXPECT_EQ(values_of(rows), (Values{5, 7, 9, 50, 70, 90}));
  sum(all);
  EXPECT_EQ(values_of(all), values_of(x));
}

}  // namespace
}  // namespace cosmati
