// Convolutions of channels-last copies: on the emulator against the reference, and when they are chosen.
#include "src/plan/conv/nested/channels_last.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/plan/convolution_cases.h"
#include "tests/plan/gemm_problem.h"
#include "tests/sanitized.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

Geometry wide() {
  Geometry g;
  g.c = 16, g.k = 32, g.h = 10;
  return g;
}

Plan<ConvolutionProblem> plan_on(char const* gpu, ConvolutionProblem const& problem) {
  return make_plan(problem, testing::gpu_device(gpu));
}

std::string refusal_on(char const* gpu, ConvolutionProblem const& problem) {
  return entry_of(plan_on(gpu, problem).considered, "channels_last").refusal;
}

TEST(ChannelsLast, EveryDirectionTypeAndGeometry) {
  Geometry strided = wide(), grouped = wide(), padded = wide();
  strided.stride[0] = 2, strided.stride[1] = 3, strided.dilation[0] = 2;
  grouped.groups = 2, grouped.c = 32;
  padded.pad_begin[0] = 1, padded.pad_end[1] = 2, padded.r = 1;
  test::Sample sample(5);
  for (Geometry const& g : {wide(), strided, grouped, padded})
    for (ConvolutionDirection const direction : directions)
      for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::chwn})
        for (DataType const type : {DataType::f16, DataType::bf16, DataType::tf32}) {
          if (sample.skips()) continue;
          DataType const result = type == DataType::tf32 ? DataType::f32 : type;
          auto problem = problem_of(direction, type, result, format, g);
          if (direction == ConvolutionDirection::filter) problem.db = describe(result, Shape(g.k));
          test::Trial trial(problem, 5, test::Values::small_integers);
          EXPECT_EQ(trial.expect_close(emulated_device(), {.terms = 300}, "channels_last"), "channels_last");
        }
}

// Pixels that do not begin at multiples of 16 bytes, which TMA cannot read, are copied with gaps between
// them.
TEST(ChannelsLast, FilterGradientsOfAnyNumberOfChannels) {
  for (TensorFormat const format : {TensorFormat::nhwc, TensorFormat::nchw})
    for (auto const& [channels, filters] : {std::array{16, 36}, {24, 13}, {64, 21}}) {
      Geometry g = wide();
      g.c = channels, g.k = filters, g.pad_begin[0] = g.pad_end[0] = g.pad_begin[1] = g.pad_end[1] = 1;
      auto problem = problem_of(ConvolutionDirection::filter, DataType::f16, DataType::f16, format, g);
      problem.db = describe(DataType::f16, Shape(g.k));
      test::Trial trial(problem, 5, test::Values::small_integers);
      EXPECT_EQ(trial.expect_close(emulated_device(), {.terms = 300}, "channels_last"), "channels_last")
          << channels << ' ' << filters;
    }
  for (TensorFormat const format : {TensorFormat::nhwc, TensorFormat::nchw}) {
    Geometry few = wide(), column = wide();  // with few channels, x is read as it is
    few.c = 3, few.k = 36, column.c = 24, column.k = 12, column.w = column.s = 1;
    for (Geometry const& g : {few, column}) {
      auto const problem = problem_of(ConvolutionDirection::filter, DataType::f16, DataType::f16, format, g);
      test::Trial trial(problem, 5, test::Values::small_integers);
      EXPECT_EQ(trial.expect_close(emulated_device(), {.terms = 300}, "channels_last"), "channels_last");
    }
  }
  Geometry head;  // of RetinaNet
  head.n = 8, head.c = 256, head.k = 36, head.h = head.w = 64;
  head.pad_begin[0] = head.pad_end[0] = head.pad_begin[1] = head.pad_end[1] = 1;
  auto const problem = [&] {
    return problem_of(ConvolutionDirection::filter, DataType::f16, DataType::f16, TensorFormat::nhwc, head);
  };
  auto const plan = plan_on("h200", problem());
  EXPECT_EQ(plan.kernel, "channels_last");
  EXPECT_EQ(plan::plan_of_copied(plan).kernel, "wgrad_taps");
  ASSERT_EQ(plan::plans_of_copies(plan).size(), 1U);
  EXPECT_EQ(plan::plans_of_copies(plan)[0].problem.y.layout.stride[3], 40);
  head.k = 40;
  EXPECT_EQ(refusal_on("h200", problem()), "the channels of its operands are already contiguous");
}

// Images with few channels are read and written as they are; only those with many are copied.
TEST(ChannelsLast, FewChannels) {
  Geometry stem, of_one = wide();
  stem.c = 3, stem.k = 16, stem.h = stem.w = 19, stem.r = stem.s = 5;
  stem.stride[0] = stem.stride[1] = 2, stem.pad_begin[0] = stem.pad_end[1] = 2;
  of_one.c = 1;
  for (Geometry const& g : {stem, of_one})
    for (ConvolutionDirection const direction : directions) {
      DataType const result = direction == ConvolutionDirection::data ? DataType::f32 : DataType::f16;
      auto problem = problem_of(direction, DataType::f16, result, TensorFormat::nchw, g);
      test::Trial trial(problem, 6, test::Values::small_integers);
      EXPECT_EQ(trial.expect_close(emulated_device(), {.terms = 300}, "channels_last"), "channels_last");
    }
}

TEST(ChannelsLast, FewChannelsOfTheFirstLayer) {
  Geometry stem;
  stem.n = 64, stem.c = 3, stem.k = 64, stem.h = stem.w = 224, stem.r = stem.s = 7;
  stem.stride[0] = stem.stride[1] = 2;
  stem.pad_begin[0] = stem.pad_begin[1] = stem.pad_end[0] = stem.pad_end[1] = 3;
  for (auto const& [direction, kernel] : {std::pair{ConvolutionDirection::forward, "fprop_small_c"},
                                          {ConvolutionDirection::data, "dgrad_small_c"},
                                          {ConvolutionDirection::filter, "wgrad_small_c"}}) {
    auto const plan =
        plan_on("h200", problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nchw, stem));
    ASSERT_EQ(plan.kernel, "channels_last");
    Plan<ConvolutionProblem> const inner = plan::plan_of_copied(plan);
    EXPECT_EQ(inner.kernel, kernel);
    EXPECT_EQ(inner.problem.y.layout.stride[1], 1);
    EXPECT_NE(inner.problem.x.layout.stride[1], 1);
    EXPECT_EQ(plan::plans_of_copies(plan).size(), 1);
  }
}

// PyTorch's contiguous images on the GPUs that most people have.
TEST(ChannelsLast, IsTakenWhereMmaReadsRunsOfChannels) {
  Geometry layer;
  layer.n = 64, layer.c = layer.k = 128, layer.h = layer.w = 28;
  layer.pad_begin[0] = layer.pad_begin[1] = layer.pad_end[0] = layer.pad_end[1] = 1;
  for (char const* gpu : {"rtx3060", "rtx3090", "rtx4090", "rtx5090", "a10", "l4", "l40s", "a100"})
    for (DataType const type : {DataType::f16, DataType::bf16}) {
      auto const planar = problem_of(ConvolutionDirection::forward, type, type, TensorFormat::nchw, layer);
      auto const plan = plan_on(gpu, planar);
      EXPECT_EQ(plan.kernel, "channels_last") << gpu;
      EXPECT_GE(plan.workspace_bytes, static_cast<std::size_t>(planar.x.bytes() + planar.w.bytes()));
      EXPECT_EQ(plan::plan_of_copied(plan).recipe.product.policy.multiply, Multiply::mma) << gpu;
      auto const last = problem_of(ConvolutionDirection::forward, type, type, TensorFormat::nhwc, layer);
      EXPECT_EQ(refusal_on(gpu, last), "the channels of its operands are already contiguous");
      EXPECT_EQ(plan_on(gpu, last).kernel, "implicit_gemm") << gpu;
    }
}

// wgmma reads and writes full channels between two passes at the speed of a copy.
TEST(ChannelsLast, ResultsAreCopiedBackWhereWgmmaMultiplies) {
  Geometry layer;
  layer.n = 64, layer.c = layer.k = 64, layer.h = layer.w = 56;
  layer.pad_begin[0] = layer.pad_begin[1] = layer.pad_end[0] = layer.pad_end[1] = 1;
  for (ConvolutionDirection const direction : directions) {
    auto const planar = problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nchw, layer);
    auto const plan = plan_on("h200", planar);
    ASSERT_EQ(plan.kernel, "channels_last");
    Plan<ConvolutionProblem> const inner = plan::plan_of_copied(plan);
    TensorDescription const& result = direction == ConvolutionDirection::forward ? inner.problem.y
                                      : direction == ConvolutionDirection::data  ? inner.problem.x
                                                                                 : inner.problem.w;
    EXPECT_EQ(result.layout.stride[1], 1);
    std::vector<Plan<TransformProblem>> const copies = plan::plans_of_copies(plan);
    EXPECT_EQ(copies.back().problem.x.layout.stride[1], 1);
    EXPECT_NE(copies.back().problem.y.layout.stride[1], 1);
  }
}

// NCHW in 16 bits on an H200: planes of 7x7 are copied as fast as others, and data gradients with strides
// would store single elements.
TEST(ChannelsLast, IsTakenForPlanesOfOddExtentsAndForStrides) {
  Geometry sevens, strided;
  sevens.n = strided.n = 64;
  sevens.c = 2048, sevens.k = 512, sevens.h = sevens.w = 7, sevens.r = sevens.s = 1;
  strided.c = 256, strided.k = 512, strided.h = strided.w = 56, strided.r = strided.s = 1;
  strided.stride[0] = strided.stride[1] = 2;
  for (ConvolutionDirection const direction : directions)
    EXPECT_EQ(plan_on("h200", problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nchw, sevens))
                  .kernel,
              "channels_last");
  EXPECT_EQ(plan_on("h200", problem_of(ConvolutionDirection::data, DataType::f16, DataType::f16,
                                       TensorFormat::nchw, strided))
                .kernel,
            "channels_last");
}

TEST(ChannelsLast, RefusalsGiveTheReason) {
  auto const of = [](DataType type, Geometry const& g) {
    return problem_of(ConvolutionDirection::forward, type, type, TensorFormat::nchw, g);
  };
  Geometry narrow;
  EXPECT_EQ(refusal_on("a100", of(DataType::f32, wide())), "tensor cores do not multiply f32 by f32");
  EXPECT_EQ(refusal_on("a100", of(DataType::f16, narrow)), "6 channels of y do not fill units of 16 bytes");
  narrow.c = 12;
  EXPECT_EQ(refusal_on("a100", of(DataType::f16, narrow)),
            "12 channels of f16 per group do not fill runs of 16 bytes");
  EXPECT_NE(refusal_on("t4", of(DataType::f16, wide())), "");
  PlanOptions none;
  none.max_workspace = 0;
  EXPECT_NE(make_plan(of(DataType::f16, wide()), testing::gpu_device("a100"), none).kernel, "channels_last");
}

}  // namespace
}  // namespace cosmati
