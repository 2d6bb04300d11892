// Strided data gradients by sliding-window kernels: all phases in one launch, whatever their numbers of
// pixels and taps, in the emulator, against the reference.
#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/sliding.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

PlanOptions only(char const* kernel) {
  PlanOptions options;
  options.kernel = kernel;
  return options;
}

ConvolutionProblem gradient(Geometry const& geometry, TensorFormat format, DataType type = DataType::f32) {
  return problem_of(ConvolutionDirection::data, type, type, format, geometry);
}

std::string recipe_text(Plan<ConvolutionProblem> const& plan) { return plan.chosen().recipe; }

// A strided convolution, its number of phases, and the launches for them.
struct Strided {
  Geometry geometry;
  int phases, launches = 1;
};

std::vector<Strided> strided() {
  Geometry halves, odd, padded, fifths, shared, missing, tiny, many;
  halves.stride[0] = halves.stride[1] = 2, halves.h = 12, halves.w = 10;  // 3x3 taps: 2 or 1 per phase
  halves.pad_begin[0] = halves.pad_begin[1] = halves.pad_end[0] = halves.pad_end[1] = 1;
  odd = halves, odd.h = 19, odd.w = 21, odd.r = odd.s = 5;  // phases with one row or column fewer
  odd.pad_begin[0] = 0, odd.pad_end[0] = 3;
  padded = halves, padded.h = 13, padded.stride[0] = 3, padded.r = 4;  // rows at which no window ends
  fifths = halves, fifths.stride[0] = 5, fifths.stride[1] = 4, fifths.h = 23, fifths.r = 6;
  shared = halves, shared.dilation[0] = shared.dilation[1] = 2, shared.stride[1] = 4,
  shared.h = 17;                                                       // half of the phases have all the taps
  missing = halves, missing.stride[0] = 4, missing.r = missing.s = 1;  // one tap, which only few phases have
  missing.pad_begin[0] = missing.pad_begin[1] = missing.pad_end[0] = missing.pad_end[1] = 0;
  tiny = halves, tiny.h = 1, tiny.w = 3,
  tiny.stride[1] = 4;  // fewer pixels than the stride: a row, 3 columns
  tiny.pad_end[1] = 2;
  many = halves, many.n = 1, many.stride[0] = 9, many.stride[1] = 8, many.h = 20, many.w = 17;
  return {{halves, 4}, {odd, 4},     {padded, 6}, {fifths, 20},
          {shared, 8}, {missing, 8}, {tiny, 3},   {many, 72, 2}};
}

void expect_launches(ConvolutionProblem const& p, char const* kernel, Strided const& expected) {
  auto const plan = make_plan(p, emulated_device(), only(kernel));
  EXPECT_EQ(plan.recipe.launches, expected.launches);
  std::string const text = std::to_string(expected.launches) +
                           (expected.launches == 1 ? " launch" : " launches") + " for " +
                           std::to_string(expected.phases) + " phases";
  EXPECT_NE(recipe_text(plan).find(text), std::string::npos) << recipe_text(plan);
  expect_right(p, kernel);
}

TEST(SlidingPhases, DirectTiledComputesAllInOneLaunch) {
  for (Strided const& each : strided())
    for (TensorFormat const format : formats) {
      expect_launches(gradient(each.geometry, format), "direct_tiled", each);
      Geometry grouped = each.geometry;
      grouped.groups = 2, grouped.c = 6, grouped.k = 4;
      expect_launches(gradient(grouped, format), "direct_tiled", each);
    }
}

TEST(SlidingPhases, DepthwiseComputesAllInOneLaunch) {
  for (Strided const& each : strided())
    for (TensorFormat const format : formats)
      for (Index const filters : {1, 2}) {
        Geometry geometry = each.geometry;
        geometry.c = geometry.groups = 12, geometry.k = geometry.c * filters;
        expect_launches(gradient(geometry, format), "depthwise", each);
      }
}

// Parameters of an epilogue with one array leave room for 26 or 27 phases.
TEST(SlidingPhases, WhatALaunchCannotTakeIsDividedEvenly) {
  Geometry geometry;
  geometry.c = geometry.k = geometry.groups = 3, geometry.stride[0] = 5, geometry.stride[1] = 6;
  geometry.h = 21, geometry.w = 17, geometry.r = 7;
  for (char const* const kernel : {"direct_tiled", "depthwise"}) {
    auto p = gradient(geometry, TensorFormat::nchw);
    p.epilogue.expression =
        epilogue::parse("relu(2 * acc - rest[n, k, p, q])", epilogue::convolution_indices);
    p.epilogue.operands = {p.x};
    expect_launches(p, kernel, {geometry, 30, 2});
    auto const launches =
        plan::sliding_launches(p, make_plan(p, emulated_device(), only(kernel)).recipe.algorithm);
    for (auto const& launch : launches) EXPECT_EQ(launch.size(), 15u);
  }
}

TEST(SlidingPhases, OtherTypes) {
  for (char const* const kernel : {"direct_tiled", "depthwise"})
    for (DataType const type : {DataType::f64, DataType::f16, DataType::s32}) {
      Geometry geometry = strided()[1].geometry;
      geometry.c = geometry.k = geometry.groups = 3;
      expect_right(gradient(geometry, TensorFormat::nhwc, type), kernel);
    }
}

TEST(SlidingPhases, KernelsKnowBothNumbersOfTaps) {
  for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc}) {
    Geometry geometry = strided().front().geometry;
    geometry.c = geometry.k = geometry.groups = 12;
    for (char const* const kernel : {"direct_tiled", "depthwise"}) {
      auto const plan = make_plan(gradient(geometry, format), emulated_device(), only(kernel));
      auto const* const tiled = std::get_if<DirectTiledRecipe>(&plan.recipe.own);
      KnownAxis const known =
          tiled != nullptr ? tiled->rows : std::get<DepthwiseRecipe>(plan.recipe.own).axis;
      EXPECT_EQ(known.taps, 2);
      EXPECT_TRUE(known.uneven);
      EXPECT_NE(recipe_text(plan).find("2 taps or one fewer in registers"), std::string::npos);
    }
  }
}

// The lanes of depthwise lie along contiguous memory, although the columns of a phase are not contiguous.
TEST(SlidingPhases, LanesLieAlongColumnsWherePlanesDo) {
  Geometry geometry = strided().front().geometry;
  geometry.c = geometry.k = geometry.groups = 12;
  for (bool const last : {false, true}) {
    auto const p = gradient(geometry, last ? TensorFormat::nhwc : TensorFormat::nchw);
    EXPECT_EQ(std::get<DepthwiseRecipe>(make_plan(p, emulated_device(), only("depthwise")).recipe.own)
                  .channels_last,
              last);
  }
}

struct NoParams {};

TEST(PhasesInTurn, EveryBlockOfEveryPlaceIsComputedOnce) {
  std::vector<std::vector<Index>> const cases = {{1},       {7},          {5, 5},          {9, 6, 6, 4},
                                                 {1, 2, 3}, {4, 4, 4, 1}, {2, 9, 2, 2, 3}, {3, 1, 1, 3}};
  for (std::vector<Index> const& blocks : cases) {
    PhasesInTurn<NoParams, 8> phases;
    int const count = static_cast<int>(blocks.size());
    Index const all = take_turns(phases, blocks.data(), count);
    std::vector<std::vector<int>> computed;
    for (Index const own : blocks) computed.emplace_back(own, 0);
    for (int block = 0; block < all; ++block) {
      PhaseBlock const at = phase_and_block(phases, block);
      ASSERT_LT(at.phase, count);
      ASSERT_LT(at.block, blocks[static_cast<std::size_t>(at.phase)]);
      ++computed[static_cast<std::size_t>(at.phase)][static_cast<std::size_t>(at.block)];
    }
    for (std::vector<int> const& times : computed)
      for (int const each : times) EXPECT_EQ(each, 1);
  }
}

TEST(SlidingPhases, CompileWithoutSpills) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  Device device = emulated_device();
  device.backend = Backend::cuda;
  Geometry generator, layer;
  generator.n = 1024, generator.c = 3, generator.k = 64, generator.h = generator.w = 64;
  generator.r = generator.s = 5, generator.stride[0] = generator.stride[1] = 2;
  layer.n = 64, layer.c = layer.k = layer.groups = 96, layer.h = layer.w = 112;
  layer.stride[0] = layer.stride[1] = 2;
  for (int i = 0; i < 2; ++i) {
    generator.pad_begin[i] = layer.pad_begin[i] = layer.pad_end[i] = 1;
    generator.pad_end[i] = 2;
  }
  for (char const* const kernel : {"direct_tiled", "depthwise"})
    for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc}) {
      bool const by_channel = std::string(kernel) == "depthwise";
      DataType const type = format == TensorFormat::nchw ? DataType::f32 : DataType::f16;
      auto const plan =
          make_plan(gradient(by_channel ? layer : generator, format, type), device, only(kernel));
      jit::Source const source = main_source(plan);
      EXPECT_NE(source.name_expression.find("_of_phases_kernel"), std::string::npos);
      EXPECT_EQ(jit::compile(source).local_bytes, 0);
    }
}

}  // namespace
}  // namespace cosmati
