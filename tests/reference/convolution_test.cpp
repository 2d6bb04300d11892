// Convolution: the textbook's worked example, hand-computed geometry, gradients against central differences.
#include <gtest/gtest.h>

#include <cmath>

#include "cosmati/epilogue/parse.h"
#include "reference/reference.h"
#include "tests/support/gradient_check.h"
#include "tests/support/random.h"
#include "tests/support/tensors.h"

namespace cosmati {
namespace {

using testing::expect_gradient;
using testing::poisoned;
using testing::Random;
using testing::tensor;
using testing::Values;
using testing::values_of;
using testing::weighted_sum;

ConvolutionProblem problem_of(Tensor const& x, Tensor const& w, Tensor const& y) {
  ConvolutionProblem problem;
  problem.x = x.description();
  problem.w = w.description();
  problem.y = y.description();
  return problem;
}

void forward(ConvolutionProblem problem, Tensor const& x, Tensor const& w, Tensor& y) {
  problem.direction = ConvolutionDirection::forward;
  validate(problem);
  reference::run(problem, {.x = x.data(), .w = w.data(), .y = y.data()});
}

// Kirk and Hwu's figure 16.14: 3 input maps of 3x3, 2 output maps of 2x2.
TEST(ReferenceConvolution, ChapterExample) {
  Tensor const x =
      tensor({1, 3, 3, 3}, {1, 2, 0, 1, 1, 3, 0, 2, 2, 0, 2, 1, 0, 3, 2, 1, 1, 0, 1, 2, 1, 0, 1, 3, 3, 3, 2});
  Tensor const w = tensor({2, 3, 2, 2}, {1, 1, 2, 2, 1, 1, 1, 1, 0, 1, 1, 0,  //
                                         1, 0, 0, 1, 2, 1, 2, 1, 1, 2, 2, 0});
  Tensor y = poisoned({1, 2, 2, 2});
  forward(problem_of(x, w, y), x, w, y);
  EXPECT_EQ(values_of(y), (Values{14, 20, 15, 24, 12, 24, 17, 26}));
}

// Along the depth only: two channels of planes of one pixel, taps at d - 1 and d + 1, every second d.
TEST(ReferenceConvolution, DepthByHand) {
  Tensor const x = tensor({1, 2, 5, 1, 1}, {1, 2, 3, 4, 5, 100, 200, 300, 400, 500});
  Tensor const w = tensor({1, 2, 2, 1, 1}, {10, 1, 2, 3});
  Tensor y = poisoned({1, 1, 3, 1, 1});
  ConvolutionProblem problem = problem_of(x, w, y);
  problem.depth = {2, 1, 1, 2};
  forward(problem, x, w, y);
  EXPECT_EQ(values_of(y), (Values{2 + 600, 20 + 4 + 400 + 1200, 40 + 800}));
}

// A volume that is one plane, and windows of one plane: the convolution of images.
TEST(ReferenceConvolution, VolumesOfOnePlaneAreImages) {
  Tensor const x = tensor({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}), w = tensor({1, 1, 2, 2}, {1, -1, 2, 3});
  Tensor y = poisoned({1, 1, 1, 2});
  forward(problem_of(x, w, y), x, w, y);
  Tensor const deep_x = tensor({1, 1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}),
               deep_w = tensor({1, 1, 1, 2, 2}, {1, -1, 2, 3});
  Tensor deep_y = poisoned({1, 1, 1, 1, 2});
  forward(problem_of(deep_x, deep_w, deep_y), deep_x, deep_w, deep_y);
  EXPECT_EQ(values_of(y), values_of(deep_y));
}

TEST(ReferenceConvolution, StridePaddingDilationByHand) {
  Tensor const x = tensor({1, 1, 1, 5}, {1, 2, 3, 4, 5});
  Tensor const w = tensor({1, 1, 1, 2}, {10, 1});
  Tensor y = poisoned({1, 1, 1, 3});
  ConvolutionProblem problem = problem_of(x, w, y);
  problem.stride[1] = 2;
  problem.pad_begin[1] = 1;
  problem.pad_end[1] = 1;
  problem.dilation[1] = 2;  // taps at w - 1 and w + 1
  forward(problem, x, w, y);
  EXPECT_EQ(values_of(y), (Values{0 + 2, 20 + 4, 40 + 0}));
}

TEST(ReferenceConvolution, GroupsSeeTheirOwnChannels) {
  Tensor const x = tensor({1, 4, 1, 1}, {1, 2, 3, 4});
  Tensor const w = tensor({2, 2, 1, 1}, {1, 10, 1, 10});
  Tensor y = poisoned({1, 2, 1, 1});
  ConvolutionProblem problem = problem_of(x, w, y);
  problem.groups = 2;
  forward(problem, x, w, y);
  EXPECT_EQ(values_of(y), (Values{21, 43}));
}

TEST(ReferenceConvolution, SumsInDoubleAndRoundsOnce) {
  Tensor const x = tensor({1, 3, 1, 1}, {1e8, 1, -1e8}, DataType::f32);
  Tensor const w = tensor({1, 3, 1, 1}, {1, 1, 1}, DataType::bf16);
  Tensor y = poisoned({1, 1, 1, 1}, DataType::f16);
  forward(problem_of(x, w, y), x, w, y);
  EXPECT_EQ(y.get(0), 1);
}

TEST(ReferenceConvolution, EmptySumsAreZero) {
  Tensor const x(DataType::f64, {2, 0, 3, 3});
  Tensor const w(DataType::f64, {2, 0, 2, 2});
  Tensor y = poisoned({2, 2, 2, 2});
  forward(problem_of(x, w, y), x, w, y);
  EXPECT_EQ(values_of(y), Values(16, 0.0));
}

TEST(ReferenceConvolution, EpilogueSeesOutputChannel) {
  Tensor const x = tensor({1, 1, 1, 2}, {1, -2});
  Tensor const w = tensor({2, 1, 1, 1}, {1, -1});
  Tensor const bias = tensor({2}, {10, 1});
  Tensor y = poisoned({1, 2, 1, 2}), before = poisoned({1, 2, 1, 2});
  ConvolutionProblem problem = problem_of(x, w, y);
  problem.epilogue = {
      epilogue::parse("let t = acc + bias[k]; store(before, t); relu(t) * s", epilogue::convolution_indices),
      {bias.description()},
      {before.description()}};
  validate(problem);
  void const* const operands[] = {bias.data()};
  double const scalars[] = {2};
  void* const stores[] = {before.data()};
  reference::run(problem, {.x = x.data(),
                           .w = w.data(),
                           .y = y.data(),
                           .operands = operands,
                           .scalars = scalars,
                           .stores = stores});
  EXPECT_EQ(values_of(before), (Values{11, 8, 0, 3}));
  EXPECT_EQ(values_of(y), (Values{22, 16, 0, 6}));
}

// The generator's layer, out[2i + r - 1, 2j + s - 1, k] += in[i, j, c] * W[r, s, k, c], as a data gradient
// with stride 2 and padding 1 before, 2 after.
TEST(ReferenceConvolution, TransposedEqualsScatter) {
  Random random(3);
  Index const filters = 3, channels = 2, size = 4;
  Tensor const in = random.tensor({1, filters, size, size});
  Tensor const w = random.tensor({filters, channels, 5, 5});
  Tensor out = poisoned({1, channels, 2 * size, 2 * size});
  ConvolutionProblem problem = problem_of(out, w, in);
  problem.direction = ConvolutionDirection::data;
  for (int i = 0; i < 2; ++i) {
    problem.stride[i] = 2;
    problem.pad_begin[i] = 1;
    problem.pad_end[i] = 2;
  }
  validate(problem);
  reference::run(problem, {.w = w.data(), .dy = in.data(), .dx = out.data()});

  Tensor expected(DataType::f64, out.shape());
  expected.fill(0);
  auto const at = [](Tensor const& t, Index n, Index c, Index h, Index v) {
    return t.as<double>()[t.layout().offset(n, c, h, v)];
  };
  for (Index c = 0; c < filters; ++c)
    for (Index k = 0; k < channels; ++k)
      for (Index i = 0; i < size; ++i)
        for (Index j = 0; j < size; ++j)
          for (Index r = 0; r < 5; ++r)
            for (Index s = 0; s < 5; ++s) {
              Index const h = 2 * i + r - 1, v = 2 * j + s - 1;
              if (h >= 0 && h < 2 * size && v >= 0 && v < 2 * size)
                expected.as<double>()[expected.layout().offset(Index{0}, k, h, v)] +=
                    at(in, 0, c, i, j) * at(w, c, k, r, s);
            }
  for (Index i = 0; i < out.size(); ++i) EXPECT_NEAR(out.get(i), expected.get(i), 1e-12);
}

struct RandomCase {
  ConvolutionProblem problem;
  Tensor x, w, y, dy;
};

RandomCase random_case(unsigned seed) {
  Random random(seed);
  RandomCase result;
  ConvolutionProblem& problem = result.problem;
  Index const groups = random.between(1, 3), n = random.between(1, 2);
  Index const c = groups * random.between(1, 2), k = groups * random.between(1, 2);
  Index image[2], taps[2], outputs[2];
  for (int i = 0; i < 2; ++i) {
    do {
      image[i] = random.between(1, 6);
      taps[i] = random.between(1, 3);
      problem.stride[i] = random.between(1, 3);
      problem.dilation[i] = random.between(1, 2);
      problem.pad_begin[i] = random.between(0, 3);
      problem.pad_end[i] = random.between(0, 3);
      outputs[i] = convolution_extent(image[i], taps[i], problem.stride[i], problem.pad_begin[i],
                                      problem.pad_end[i], problem.dilation[i]);
    } while (outputs[i] == 0);
  }
  problem.groups = groups;
  result.x = random.tensor({n, c, image[0], image[1]});
  result.w = random.tensor({k, c / groups, taps[0], taps[1]});
  result.y = random.tensor({n, k, outputs[0], outputs[1]});
  result.dy = random.tensor(result.y.shape());
  problem.x = result.x.description();
  problem.w = result.w.description();
  return result;
}

TEST(ReferenceConvolution, GradientsOfRandomShapes) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomCase c = random_case(seed);
    auto const loss = [&] {
      c.problem.y = c.y.description();
      forward(c.problem, c.x, c.w, c.y);
      return weighted_sum(c.dy, c.y);
    };
    std::string const name = "seed " + std::to_string(seed);
    ConvolutionProblem problem = c.problem;
    problem.y = c.dy.description();
    Tensor dx(c.x.description()), dw(c.w.description());

    problem.direction = ConvolutionDirection::data;
    validate(problem);
    reference::run(problem, {.w = c.w.data(), .dy = c.dy.data(), .dx = dx.data()});
    expect_gradient(name + " dx", c.x, dx, loss);

    Tensor db = poisoned({c.dy.shape()[1]});
    problem.direction = ConvolutionDirection::filter;
    problem.db = db.description();
    validate(problem);
    reference::run(problem, {.x = c.x.data(), .dy = c.dy.data(), .dw = dw.data(), .db = db.data()});
    expect_gradient(name + " dw", c.w, dw, loss);

    Tensor bias = poisoned(db.shape());
    problem.direction = ConvolutionDirection::bias;
    validate(problem);
    reference::run(problem, {.dy = c.dy.data(), .db = bias.data()});
    EXPECT_EQ(values_of(bias), values_of(db)) << name;
  }
}

TEST(ReferenceConvolution, BiasGradientByHand) {
  Tensor const dy = tensor({2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  Tensor db = poisoned({2});
  ConvolutionProblem problem;
  problem.direction = ConvolutionDirection::bias;
  problem.y = dy.description();
  problem.db = db.description();
  validate(problem);
  reference::run(problem, {.dy = dy.data(), .db = db.data()});
  EXPECT_EQ(values_of(db), (Values{14, 22}));
}

TEST(ConvolutionExtent, RoundsDownAndIsZeroWhereNothingFits) {
  EXPECT_EQ(convolution_extent(28, 5, 1, 0, 0, 1), 24);
  EXPECT_EQ(convolution_extent(224, 7, 2, 3, 3, 1), 112);
  EXPECT_EQ(convolution_extent(5, 3, 2, 0, 0, 2), 1);
  EXPECT_EQ(convolution_extent(4, 5, 1, 0, 0, 1), 0);
  EXPECT_EQ(convolution_extent(4, 5, 3, 0, 0, 1), 0);
  EXPECT_EQ(convolution_extent(4, 5, 3, 0, 1, 1), 1);
}

}  // namespace
}  // namespace cosmati
