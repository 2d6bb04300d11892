// Convolutions with few groups of many channels, one group after another: when this is planned, and results.
#include "src/plan/conv/nested/group_slices.h"

#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "tests/plan/convolution_cases.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

constexpr char const* kernel = "group_slices";

// Three groups of 232 channels: a layer of RegNet.
TEST(GroupSlices, AreChosenForWideGroups) {
  Geometry g;
  g.n = 64, g.c = g.k = 696, g.groups = 3, g.h = g.w = 14;
  for (int i : {0, 1}) g.pad_begin[i] = g.pad_end[i] = 1;
  for (auto const direction : directions) {
    auto const plan = make_plan(problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nhwc, g),
                                described_h200());
    EXPECT_EQ(plan.kernel, kernel) << static_cast<int>(direction);
    ConvolutionProblem const group = plan::plan_of_group(plan).problem;
    EXPECT_EQ(group.groups, 1);
    EXPECT_EQ(group.x.extent(1), 232);
    EXPECT_EQ(group.x.layout.stride[3], 696);
    EXPECT_EQ(group.w.extent(0), 232);
  }
}

TEST(GroupSlices, AreTheReferences) {
  for (auto const format : {TensorFormat::nhwc, TensorFormat::nchw})
    for (auto const direction : directions) {
      Geometry g;
      g.c = 64, g.k = 96, g.groups = 2, g.h = 6, g.w = 5;
      g.pad_begin[0] = 1, g.pad_end[1] = 2;
      ConvolutionProblem problem = problem_of(direction, DataType::f16, DataType::f16, format, g);
      expect_right(problem, kernel);
      problem.x.layout.stride[0] += 64 * 30;  // as if images were left out
      expect_right(problem, kernel);
    }
}

// Operands that depend on the channel are offset with the group; the others are not.
TEST(GroupSlices, OperandsOfTheEpilogueMove) {
  Geometry g;
  g.c = 96, g.k = 64, g.groups = 2, g.h = 6, g.w = 5;
  ConvolutionProblem forward =
      problem_of(ConvolutionDirection::forward, DataType::f16, DataType::f16, TensorFormat::nhwc, g);
  forward.epilogue.expression =
      epilogue::parse("acc + bias[k] - rest[n, k, p, q] + row[p]", epilogue::convolution_indices);
  forward.epilogue.operands = {describe(DataType::f32, {Index{64}}), forward.y,
                               describe(DataType::f32, {forward.y.extent(2)})};
  expect_right(forward, kernel);
  ConvolutionProblem data =
      problem_of(ConvolutionDirection::data, DataType::f16, DataType::f16, TensorFormat::nhwc, g);
  data.epilogue.expression =
      epilogue::parse("relu(acc + bias[k]) - rest[n, k, p, q]", epilogue::convolution_indices);
  data.epilogue.operands = {describe(DataType::f32, {Index{96}}), data.x};
  expect_right(data, kernel);
}

TEST(GroupSlices, WithTheBiasGradient) {
  Geometry g;
  g.c = 64, g.k = 64, g.groups = 2, g.h = 6, g.w = 5;
  ConvolutionProblem problem =
      problem_of(ConvolutionDirection::filter, DataType::f16, DataType::f16, TensorFormat::nhwc, g);
  problem.db = describe(DataType::f32, Shape(g.k));
  test::Trial trial(problem, 5, test::Values::small_integers);
  EXPECT_EQ(trial.expect_close(emulated_device(), {.terms = 300}, kernel), kernel);
}

TEST(GroupSlices, RefusalsHoldTheNumbers) {
  Geometry g;
  auto const refusal = [&] {
    return refusal_of(
        problem_of(ConvolutionDirection::forward, DataType::f16, DataType::f16, TensorFormat::nhwc, g),
        kernel);
  };
  g.c = g.k = 64;
  EXPECT_EQ(refusal(), "there is one group");
  g.groups = 4;
  EXPECT_EQ(refusal(),
            "4 groups of 16 and 16 channels; running groups separately pays off for at most 32 groups of at "
            "least 32");
  g.c = g.k = 64 * 40, g.groups = 40;
  EXPECT_NE(refusal().find("40 groups of 64 and 64 channels"), std::string::npos);
}

}  // namespace
}  // namespace cosmati
