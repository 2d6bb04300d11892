// Pooling against hand-computed values (padding, dilation, ties, NaN, indices), and its gradients against
// central differences.
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
using testing::Values;
using testing::values_of;

constexpr double nan = __builtin_nan("");

PoolingProblem problem_of(PoolingMode mode, Tensor const& x, Tensor const& y) {
  PoolingProblem problem;
  problem.mode = mode;
  problem.x = x.description();
  problem.y = y.description();
  return problem;
}

void forward(PoolingProblem const& problem, Tensor const& x, Tensor& y) {
  validate(problem);
  reference::run(problem, {.x = x.data(), .y = y.data()});
}

// Windows of size `window` with stride 1 over one row of pixels.
PoolingProblem row_problem(PoolingMode mode, Tensor const& x, Tensor const& y, Index window) {
  PoolingProblem problem = problem_of(mode, x, y);
  problem.window[0] = problem.stride[0] = problem.stride[1] = 1;
  problem.window[1] = window;
  return problem;
}

// Kirk and Hwu's figure 16.5 before bias and sigmoid: disjoint 2x2 windows.
TEST(ReferencePooling, DisjointWindows) {
  Tensor const x = tensor({1, 1, 2, 4}, {1, 2, 5, -1, 3, 4, 0, 2});
  Tensor y = poisoned({1, 1, 1, 2});
  forward(problem_of(PoolingMode::max, x, y), x, y);
  EXPECT_EQ(values_of(y), (Values{4, 5}));
  forward(problem_of(PoolingMode::average, x, y), x, y);
  EXPECT_EQ(values_of(y), (Values{2.5, 1.5}));
}

// Windows of 2x1x2 in a volume of 3x1x3, one plane apart: the maximum's place is (d*H + h)*W + w.
TEST(ReferencePooling, DepthByHand) {
  Tensor const x = tensor({1, 1, 3, 1, 3}, {1, 5, 2, 8, 0, 7, 3, 4, 9});
  Tensor y = poisoned({1, 1, 2, 1, 2}), indices = poisoned({1, 1, 2, 1, 2}, DataType::s32);
  PoolingProblem problem = row_problem(PoolingMode::max, x, y, 2);
  problem.depth.window = 2;
  problem.indices = indices.description();
  validate(problem);
  reference::run(problem, {.x = x.data(), .y = y.data(), .indices = indices.data()});
  EXPECT_EQ(values_of(y), (Values{8, 7, 8, 9}));
  EXPECT_EQ(values_of(indices), (Values{3, 5, 3, 8}));
  problem.indices = {};
  problem.mode = PoolingMode::average;
  problem.depth.pad_begin = 1, problem.depth.stride = 2;  // planes -1, 0 and 1, 2
  forward(problem, x, y);
  EXPECT_EQ(values_of(y), (Values{3, 3.5, 15.0 / 4, 20.0 / 4}));
  problem.mode = PoolingMode::average_with_padding;
  forward(problem, x, y);
  EXPECT_EQ(values_of(y), (Values{1.5, 1.75, 15.0 / 4, 20.0 / 4}));
}

TEST(ReferencePooling, PaddingAndRoundingUp) {
  Tensor const x = tensor({1, 1, 1, 5}, {-8, -4, -2, -1, -3});
  Tensor y = poisoned({1, 1, 1, 3});
  PoolingProblem problem = row_problem(PoolingMode::max, x, y, 3);
  problem.stride[1] = 2;
  problem.pad_begin[1] = 1;  // windows at -1..1, 1..3, 3..5: the last one extends past the right edge
  EXPECT_EQ(pooling_extent(5, 3, 2, 1, 0, 1, true), 3);
  forward(problem, x, y);
  EXPECT_EQ(values_of(y), (Values{-4, -1, -1}));
  problem.mode = PoolingMode::average;
  forward(problem, x, y);
  EXPECT_EQ(values_of(y), (Values{-6, -7.0 / 3, -2}));
  problem.mode = PoolingMode::average_with_padding;
  forward(problem, x, y);  // the tap at 5 of the last window lies outside the padded image
  EXPECT_EQ(values_of(y), (Values{-4, -7.0 / 3, -2}));
  problem.pad_end[1] = 1;  // now inside
  forward(problem, x, y);
  EXPECT_EQ(values_of(y), (Values{-4, -7.0 / 3, -4.0 / 3}));
}

TEST(ReferencePooling, FirstMaximumCountsAndNanWins) {
  Tensor const x = tensor({1, 1, 1, 6}, {3, 3, nan, 1, nan, nan});
  Tensor y = poisoned({1, 1, 1, 5});
  Tensor indices = poisoned({1, 1, 1, 5}, DataType::s32);
  PoolingProblem problem = row_problem(PoolingMode::max, x, y, 2);
  problem.indices = indices.description();
  validate(problem);
  reference::run(problem, {.x = x.data(), .y = y.data(), .indices = indices.data()});
  EXPECT_EQ(y.get(0), 3);
  for (Index i = 1; i < 5; ++i) EXPECT_TRUE(std::isnan(y.get(i)));
  EXPECT_EQ(values_of(indices), (Values{0, 2, 2, 4, 4}));
}

TEST(ReferencePooling, IndicesOfBothKinds) {
  Tensor const x = tensor({1, 2, 2, 3}, {1, 9, 2, 3, 4, 5, 7, 0, 0, 0, 0, 8});
  Tensor y = poisoned({1, 2, 1, 2});
  Tensor places = poisoned({1, 2, 1, 2}, DataType::s32), taps = poisoned({1, 2, 1, 2}, DataType::u8);
  PoolingProblem problem = problem_of(PoolingMode::max, x, y);
  problem.stride[1] = 1;
  problem.indices = places.description();
  validate(problem);
  reference::run(problem, {.x = x.data(), .y = y.data(), .indices = places.data()});
  EXPECT_EQ(values_of(places), (Values{1, 1, 0, 5}));
  problem.indices = taps.description();
  validate(problem);
  reference::run(problem, {.x = x.data(), .y = y.data(), .indices = taps.data()});
  EXPECT_EQ(values_of(taps), (Values{1, 0, 0, 3}));
}

TEST(ReferencePooling, OverlappingWindowsAddUpInOverwrittenGradient) {
  Tensor const x = tensor({1, 1, 1, 4}, {1, 5, 2, 0}), dy = tensor({1, 1, 1, 3}, {1, 10, 100});
  Tensor dx = poisoned({1, 1, 1, 4});
  PoolingProblem problem = row_problem(PoolingMode::max, x, dy, 2);
  problem.direction = Direction::backward;
  validate(problem);
  reference::run(problem, {.x = x.data(), .dy = dy.data(), .dx = dx.data()});
  EXPECT_EQ(values_of(dx), (Values{0, 11, 100, 0}));
  problem.mode = PoolingMode::average;
  validate(problem);
  reference::run(problem, {.dy = dy.data(), .dx = dx.data()});
  EXPECT_EQ(values_of(dx), (Values{0.5, 5.5, 55, 50}));
}

struct RandomCase {
  PoolingProblem problem;
  Tensor x, y, dy;
};

RandomCase random_case(unsigned seed, PoolingMode mode) {
  Random random(seed);
  while (true) {
    RandomCase c;
    PoolingProblem& problem = c.problem;
    Index image[2], outputs[2];
    for (int i = 0; i < 2; ++i) {
      image[i] = random.between(1, 6);
      problem.window[i] = random.between(1, 3);
      problem.stride[i] = random.between(1, 3);
      problem.dilation[i] = random.between(1, 2);
      problem.pad_begin[i] = random.between(0, 2);
      problem.pad_end[i] = random.between(0, 2);
      outputs[i] = pooling_extent(image[i], problem.window[i], problem.stride[i], problem.pad_begin[i],
                                  problem.pad_end[i], problem.dilation[i], random.coin());
    }
    Index const n = random.between(1, 2), channels = random.between(1, 2);
    problem.mode = mode;
    c.x = random.distinct({n, channels, image[0], image[1]});
    c.y = random.tensor({n, channels, outputs[0], outputs[1]});
    c.dy = random.tensor(c.y.shape());
    problem.x = c.x.description();
    problem.y = c.y.description();
    try {
      validate(problem);  // throws for a window without a tap in the image
      return c;
    } catch (Error const&) {
    }
  }
}

TEST(ReferencePooling, GradientsOfRandomShapes) {
  for (PoolingMode mode : {PoolingMode::max, PoolingMode::average, PoolingMode::average_with_padding})
    for (unsigned seed = 0; seed < 40; ++seed) {
      RandomCase c = random_case(seed, mode);
      auto const loss = [&] {
        forward(c.problem, c.x, c.y);
        return testing::weighted_sum(c.dy, c.y);
      };
      PoolingProblem problem = c.problem;
      problem.direction = Direction::backward;
      problem.y = c.dy.description();
      Tensor dx(c.x.description());
      dx.fill(-77);
      validate(problem);
      reference::run(problem, {.x = c.x.data(), .dy = c.dy.data(), .dx = dx.data()});
      testing::expect_gradient("seed " + std::to_string(seed), c.x, dx, loss);
    }
}

TEST(ReferencePooling, BackwardFromIndicesIsBackwardFromTheImage) {
  for (unsigned seed = 100; seed < 120; ++seed) {
    RandomCase c = random_case(seed, PoolingMode::max);
    Tensor expected(c.x.description());
    PoolingProblem backward = c.problem;
    backward.direction = Direction::backward;
    backward.y = c.dy.description();
    reference::run(backward, {.x = c.x.data(), .dy = c.dy.data(), .dx = expected.data()});
    for (DataType type : {DataType::u8, DataType::s32}) {
      Tensor indices = poisoned(c.y.shape(), type);
      Tensor dx(c.x.description());
      c.problem.indices = backward.indices = indices.description();
      validate(c.problem);
      reference::run(c.problem, {.x = c.x.data(), .y = c.y.data(), .indices = indices.data()});
      validate(backward);
      reference::run(backward, {.dy = c.dy.data(), .saved_indices = indices.data(), .dx = dx.data()});
      EXPECT_EQ(values_of(dx), values_of(expected)) << "seed " << seed << " " << name_of(type);
    }
  }
}

TEST(PoolingExtent, BothModes) {
  EXPECT_EQ(pooling_extent(28, 2, 2, 0, 0, 1, false), 14);
  EXPECT_EQ(pooling_extent(5, 2, 2, 0, 0, 1, false), 2);
  EXPECT_EQ(pooling_extent(5, 2, 2, 0, 0, 1, true), 3);
  EXPECT_EQ(pooling_extent(4, 3, 2, 0, 0, 1, true), 2);  // ONNX's test_maxpool_2d_ceil
  EXPECT_EQ(pooling_extent(5, 1, 3, 0, 2, 1, true), 2);  // a third window would start in the right padding
  EXPECT_EQ(pooling_extent(2, 2, 2, 1, 1, 1, true), 2);  // equal to the floor, which is exact
  EXPECT_EQ(pooling_extent(3, 1, 3, 0, 1, 1, true), 1);  // the second would start exactly there
  EXPECT_EQ(pooling_extent(2, 3, 2, 0, 0, 1, false), 0);
  EXPECT_EQ(pooling_extent(2, 3, 2, 0, 0, 1, true), 1);
  EXPECT_EQ(pooling_extent(2, 4, 2, 0, 0, 1, true), 0);
}

}  // namespace
}  // namespace cosmati
