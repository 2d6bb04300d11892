// direct_tiled in all three directions, in the emulator, against the reference; the planner's choice for few
// channels, and the text of its kernels.
#include <gtest/gtest.h>

#include <set>

#include "cosmati/epilogue/parse.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/filter/wgrad_direct.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

Device planned_h200() {
  Device device = emulated_device();
  device.backend = Backend::cuda;
  return device;
}

PlanOptions only_direct_tiled() {
  PlanOptions options;
  options.kernel = "direct_tiled";
  return options;
}

// Small images, several per block and fewer in the last block; odd extents; windows that reach outside.
std::vector<Geometry> small_images() {
  Geometry plain, padded, strided, rows;
  plain.n = 5, plain.c = 3, plain.k = 7, plain.h = 7, plain.w = 9;
  padded = plain, padded.c = 1, padded.k = 5, padded.h = padded.w = 6;
  padded.pad_begin[0] = padded.pad_begin[1] = padded.pad_end[0] = padded.pad_end[1] = 1;
  strided = plain, strided.stride[0] = strided.stride[1] = 2, strided.pad_begin[1] = 1, strided.h = 11;
  rows = plain, rows.h = 40, rows.w = 21, rows.s = 1, rows.pad_end[0] = 2;
  return {plain, padded, strided, rows};
}

TEST(DirectTiled, EveryLayoutAndGeometry) {
  for (ConvolutionDirection const direction : {ConvolutionDirection::forward, ConvolutionDirection::data})
    for (TensorFormat const format : formats) {
      for (Geometry const& geometry : geometries())
        expect_right(problem_of(direction, DataType::f32, DataType::f32, format, geometry), "direct_tiled");
      for (Geometry const& geometry : small_images())
        expect_right(problem_of(direction, DataType::f32, DataType::f32, format, geometry), "direct_tiled");
    }
}

TEST(DirectTiled, FilterGradients) {
  Geometry grouped;
  grouped.groups = 2, grouped.c = 6, grouped.k = 10, grouped.n = 3;
  for (TensorFormat const format : formats) {
    auto const p = problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, format, grouped);
    expect_right(p, "direct_tiled");
    for (Geometry const& geometry : small_images())
      expect_right(problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, format, geometry),
                   "direct_tiled");
  }
}

// Rows that are divided into segments, and planes of dy that are loaded by complete rows: outputs that are
// whole vectors, one fewer, and two more, so that the last segment is shorter.
TEST(DirectTiled, FilterGradientsOfFewWideRows) {
  Geometry wide;
  wide.n = 2, wide.c = 2, wide.k = 5, wide.h = 4;
  wide.pad_begin[0] = wide.pad_end[0] = wide.pad_begin[1] = wide.pad_end[1] = 1;
  for (Index const width : {152, 151, 154})
    for (TensorFormat const format : formats) {
      wide.w = width;
      auto const p = problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, format, wide);
      auto const plan = make_plan(p, emulated_device(), only_direct_tiled());
      auto const& recipe = std::get<WgradDirectRecipe>(plan.recipe.own);
      EXPECT_LT(recipe.segment, width);
      auto const schedule = plan::wgrad_direct_schedule(plan::wgrad_direct_form(p), recipe, false);
      EXPECT_EQ(schedule.segments.divisor, (width + recipe.segment - 1) / recipe.segment);
      EXPECT_EQ(schedule.gradient.dense, format == TensorFormat::nchw && width % 4 == 0);
      expect_right(p, "direct_tiled");
    }
}

// Adjacent lanes read adjacent rows of taps, then channels: no two of them from the same bank.
TEST(DirectTiled, LanesOfAFilterGradientReadDifferentBanks) {
  Geometry stem;
  stem.n = 64, stem.c = 3, stem.k = 64, stem.h = stem.w = 224, stem.r = stem.s = 7;
  stem.stride[0] = stem.stride[1] = 2;
  stem.pad_begin[0] = stem.pad_end[0] = stem.pad_begin[1] = stem.pad_end[1] = 3;
  auto const p =
      problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, TensorFormat::nchw, stem);
  auto const plan = make_plan(p, planned_h200());
  EXPECT_EQ(plan.kernel, "direct_tiled");  // measured: 506 us; implicit_gemm 1046, cuDNN 811
  auto const schedule = plan::wgrad_direct_schedule(plan::wgrad_direct_form(p),
                                                    std::get<WgradDirectRecipe>(plan.recipe.own), false);
  std::set<int> banks;
  for (int c = 0; c < 3; ++c)
    for (int r = 0; r < 7; ++r)
      banks.insert((c * schedule.image.channel_pitch + r * schedule.image.row_pitch) % 32);
  EXPECT_EQ(banks.size(), 21u);
  EXPECT_EQ(schedule.gradient.channel_pitch % 32, 4);
}

TEST(DirectTiled, EveryType) {
  for (ConvolutionDirection const direction : directions)
    for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc}) {
      Geometry geometry = small_images()[1];
      geometry.w = 8;  // outputs in whole vectors
      expect_right(problem_of(direction, DataType::f64, DataType::f64, format, geometry), "direct_tiled");
      expect_right(problem_of(direction, DataType::f16, DataType::f16, format, geometry), "direct_tiled");
      expect_right(problem_of(direction, DataType::bf16, DataType::f32, format, geometry), "direct_tiled");
      expect_right(problem_of(direction, DataType::u8, DataType::s32, format, geometry), "direct_tiled");
    }
}

TEST(DirectTiled, TheBiasGradientComesWithTheFilters) {
  for (DataType const type : {DataType::f32, DataType::f64}) {  // f64 runs in a launch of its own
    auto p = problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, TensorFormat::nchw,
                        small_images()[0]);
    p.db = describe(type, {p.y.extent(1)});
    auto const computed = [&](Device const& device, PlanOptions const& options) {
      auto const plan = make_plan(p, device, options);
      if (device.backend == Backend::emulator) {
        EXPECT_EQ(plan::makes_bias_gradient(p, plan.recipe), type == DataType::f32);
      }
      auto const prepared = prepare(plan);
      Tensor const x = filled(p.x, 1), dy = filled(p.y, 3);
      Tensor dw = filled(p.w, 9), db = filled(p.db, 9);
      ConvolutionProblem::Arguments arguments;
      arguments.x = x.data(), arguments.dy = dy.data(), arguments.dw = dw.data(), arguments.db = db.data();
      Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
      prepared.run(arguments, workspace.data());
      std::vector<double> values;
      for (Index i = 0; i < dw.layout().span(); ++i) values.push_back(load(dw.type(), dw.data(), i));
      for (Index i = 0; i < db.layout().span(); ++i) values.push_back(load(db.type(), db.data(), i));
      return values;
    };
    EXPECT_EQ(computed(emulated_device(), only_direct_tiled()),
              computed(this_device(Backend::reference), {}));
  }
}

TEST(DirectTiled, WhatDoesNotFitIsSaidWithTheBytes) {
  Geometry geometry;
  geometry.n = 1, geometry.r = geometry.s = 200, geometry.h = geometry.w = 210;
  auto const p =
      problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, TensorFormat::nhwc, geometry);
  std::string const refusal =
      entry_of(make_plan(p, emulated_device(), {}).considered, "direct_tiled").refusal;
  EXPECT_NE(refusal.find("with 200x200 taps, needs"), std::string::npos) << refusal;
  auto const gradient =
      problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, TensorFormat::nhwc, geometry);
  std::string const of_gradient =
      entry_of(make_plan(gradient, planned_h200(), {}).considered, "direct_tiled").refusal;
  EXPECT_NE(of_gradient.find("at most 31 taps"), std::string::npos) << of_gradient;
}

// LeNet-5's first two convolutions, at the smallest and the largest batch in the figures.
TEST(DirectTiled, ThePlannerTakesItForFewChannels) {
  for (Index const images : {64, 4096}) {
    Geometry first, second;
    first.n = second.n = images, first.r = first.s = second.r = second.s = 5;
    first.c = 1, first.k = 6, first.h = first.w = 28;
    first.pad_begin[0] = first.pad_begin[1] = first.pad_end[0] = first.pad_end[1] = 2;
    second.c = 6, second.k = 16, second.h = second.w = 14;
    for (ConvolutionDirection const direction : directions) {
      auto const kernel = [&](Geometry const& geometry) {
        return make_plan(problem_of(direction, DataType::tf32, DataType::f32, TensorFormat::nchw, geometry),
                         planned_h200())
            .kernel;
      };
      EXPECT_EQ(kernel(second), "direct_tiled");
      if (direction != ConvolutionDirection::data) {
        EXPECT_EQ(kernel(first), "direct_tiled");
      }
    }
  }
}

TEST(DirectTiled, CompilesWithoutSpills) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  Geometry layer;
  layer.n = 4096, layer.r = layer.s = 5, layer.c = 6, layer.k = 16, layer.h = layer.w = 14;
  for (ConvolutionDirection const direction : directions) {
    auto const plan =
        make_plan(problem_of(direction, DataType::f32, DataType::f32, TensorFormat::nchw, layer),
                  planned_h200(), only_direct_tiled());
    EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0);
    for (jit::Source const& pass : passes_of(plan)) EXPECT_EQ(jit::compile(pass).local_bytes, 0);
  }
}

}  // namespace
}  // namespace cosmati
