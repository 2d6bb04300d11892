// Convolutions through the warp_specialized main loop with packed operands: images and filters in any layout,
// few channels, results with contiguous pixels; in the emulator, against the reference.
#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/windows/packing.h"
#include "src/plan/conv/windows/tma_im2col.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

constexpr char const* kernel = "warp_specialized";
constexpr auto forward = ConvolutionDirection::forward, data = ConvolutionDirection::data;

ConvolutionProblem problem(ConvolutionDirection direction, TensorFormat format, Geometry const& geometry,
                           DataType type = DataType::f16) {
  return problem_of(direction, type, type == DataType::s8 ? DataType::s32 : type, format, geometry);
}

ConvolutionProblem with_epilogue(ConvolutionProblem p) {
  TensorDescription const& result = p.direction == forward ? p.y : p.x;
  p.epilogue.expression =
      epilogue::parse("relu(acc + bias[k] - rest[n, k, p, q])", epilogue::convolution_indices);
  p.epilogue.operands = {describe(DataType::f32, {result.extent(1)}), result};
  return p;
}

Geometry padded(Geometry geometry, Index padding) {
  for (Index* pad : {geometry.pad_begin, geometry.pad_end}) pad[0] = pad[1] = padding;
  return geometry;
}

// A first layer of 3x3, one of 7x7 with strides, one channel with a wide window, and 16 channels.
std::vector<Geometry> few_channels() {
  Geometry plain, stem, wide, sixteen;
  plain.c = 3, plain.k = 40, plain.h = 10, plain.w = 11, plain = padded(plain, 1);
  stem = plain, stem.h = 15, stem.w = 13, stem.r = stem.s = 7, stem = padded(stem, 3);
  stem.stride[0] = stem.stride[1] = 2;
  wide = plain, wide.c = 1, wide.h = 12, wide.w = 31, wide.r = 5, wide.s = 20, wide.stride[0] = 2;
  wide.stride[1] = 3, wide.pad_begin[0] = 0, wide.pad_end[0] = 3, wide.pad_begin[1] = 4;
  sixteen = plain, sixteen.c = 16, sixteen.k = 24;
  return {plain, stem, wide, sixteen};
}

// Runs the plan with another packing.
void expect_right_packed(ConvolutionProblem const& p, PackRecipe packing) {
  PlanOptions options;
  options.kernel = kernel;
  auto plan = make_plan(p, emulated_device(), options);
  plan::place_in_workspace(packing, p, plan.recipe.product.flag_bytes + plan.recipe.product.partial_bytes);
  plan.recipe.own = packing;
  plan.workspace_bytes = packing.end;
  auto const prepared = prepare(plan);
  bool const is_filter = p.direction == ConvolutionDirection::filter;
  Tensor const x = filled(p.x, 1), w = filled(p.w, 2), dy = filled(p.y, 3);
  Tensor result = filled(is_filter ? p.w : p.y, 9);
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
  ConvolutionProblem::Arguments arguments{.x = x.data(), .w = w.data(), .dy = dy.data()};
  (is_filter ? arguments.dw : arguments.y) = result.data();
  prepared.run(arguments, workspace.data());
  Computed const expected = run(p, this_device(Backend::reference), "", "");
  for (Index i = 0; i < result.layout().span(); ++i)
    ASSERT_EQ(load(result.type(), result.data(), i), load(result.type(), expected.result.data(), i))
        << packing.rows << " rows in " << packing.place << ", element " << i;
}

TEST(PackedWindows, RowsAreReadTogetherInEveryWay) {
  for (ConvolutionDirection const direction : {forward, ConvolutionDirection::filter})
    for (Geometry const& geometry : few_channels())
      for (TensorFormat const format : {TensorFormat::nhwc, TensorFormat::nchw}) {
        auto const p = problem(direction, format, geometry);
        std::vector<PackRecipe> const ways = plan::packings_of_rows(p);
        EXPECT_FALSE(ways.empty());
        for (PackRecipe way : ways) {
          if (format == TensorFormat::nchw) way.other = true;
          expect_right_packed(p, way);
        }
      }
}

// Taps of a filter gradient are padded to full steps, and removed at the end.
TEST(PackedWindows, FiltersGradientsOfAnyChannels) {
  Geometry odd;
  odd.c = 72, odd.k = 21, odd.h = 9, odd.w = 8, odd = padded(odd, 1), odd.dilation[0] = 2;
  for (Index const channels : {72, 13})
    for (TensorFormat const format : {TensorFormat::nhwc, TensorFormat::nchw}) {
      odd.c = channels;
      auto p = problem(ConvolutionDirection::filter, format, odd);
      expect_right(p, kernel);
      p.w.type = DataType::f32;
      expect_right(p, kernel);
    }
}

TEST(PackedWindows, AStemTakesRowsOfAStrideTogether) {
  auto const p = problem(forward, TensorFormat::nhwc, few_channels()[1]);
  std::vector<PackRecipe> const ways = plan::packings_of_rows(p);
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways[0].rows, 2);
  EXPECT_EQ(ways[0].place, 8);
  // The 7 rows are four pairs, as far apart as windows; 7 columns of 8 elements form one step.
  ConvolutionProblem const left = plan::packed_problem(p, ways[0]);
  EXPECT_EQ(left.stride[0], 1);
  EXPECT_EQ(left.dilation[0], 1);
  EXPECT_EQ(left.w.extent(2), 4);
  EXPECT_EQ(left.w.extent(3), 1);
  EXPECT_EQ(left.x.extent(1), 56);
  EXPECT_EQ(left.x.layout.stride[3], 16);
}

TEST(PackedWindows, PixelsInnermost) {
  Geometry plain, strided, odd;
  plain.c = 24, plain.k = 40, plain.h = 9, plain.w = 8, plain = padded(plain, 1);
  strided = plain, strided.stride[0] = 2, strided.stride[1] = 3, strided.h = 13;
  odd = plain, odd.c = 13, odd.k = 21, odd.n = 3;
  for (Geometry const& geometry : {plain, strided, odd})
    for (ConvolutionDirection const direction : {forward, data}) {
      auto const p = problem(direction, TensorFormat::nchw, geometry);
      expect_right(p, kernel);
      expect_right(with_epilogue(p), kernel);
    }
  plain.n = 1;
  expect_right(problem(forward, TensorFormat::nchw, plain), kernel);
}

TEST(PackedWindows, ChannelsThatAreNoUnit) {
  Geometry odd;
  odd.c = 13, odd.k = 21, odd.h = 9, odd.w = 8, odd = padded(odd, 1), odd.dilation[0] = 2;
  for (ConvolutionDirection const direction : {forward, data})
    expect_right(with_epilogue(problem(direction, TensorFormat::nhwc, odd)), kernel);
  expect_right(problem(forward, TensorFormat::nhwc, odd, DataType::s8), kernel);
}

// wgmma reads 1-byte and 4-byte types only along the depth, so the filter is transposed into the workspace.
TEST(PackedWindows, FiltersOfDataGradientsOfEveryType) {
  Geometry plain, strided, odd;
  plain.c = 24, plain.k = 40, plain.h = 9, plain.w = 8, plain = padded(plain, 1);
  strided = plain, strided.stride[0] = 2, strided.stride[1] = 3, strided.h = 13, strided.dilation[1] = 2;
  odd = plain, odd.c = 13, odd.k = 21, odd.n = 3, odd.r = 2, odd.s = 1;
  for (Geometry const& geometry : {plain, strided, odd})
    for (TensorFormat const format : {TensorFormat::nhwc, TensorFormat::nchw})
      for (DataType const type : {DataType::tf32, DataType::s8})
        expect_right(with_epilogue(problem(data, format, geometry, type)), kernel);
}

// Adjacent threads pack adjacent elements: along c for (k, r, s, c), and along s for (k, c, r, s).
TEST(PackedWindows, FiltersArePackedAlongTheirOwnOrder) {
  Geometry geometry;
  geometry.c = 8, geometry.k = 32, geometry.r = 2, geometry.s = 3;
  PackRecipe recipe;
  recipe.other = true;
  auto const strides = [&](TensorFormat format) {
    auto const w = plan::packed_problem(problem(data, format, geometry, DataType::tf32), recipe).w;
    return std::vector<Index>(w.layout.stride, w.layout.stride + 4);
  };
  EXPECT_EQ(strides(TensorFormat::nhwc), (std::vector<Index>{1, 32, 3 * 8 * 32, 8 * 32}));
  EXPECT_EQ(strides(TensorFormat::nchw), (std::vector<Index>{1, 6 * 32, 3 * 32, 32}));
}

Geometry first_layer() {
  Geometry geometry;
  geometry.n = 64, geometry.c = 3, geometry.k = 64, geometry.h = geometry.w = 224;
  return padded(geometry, 1);
}

TEST(PackedWindows, TheWorkspaceHasALimit) {
  Geometry geometry = first_layer();
  geometry.c = 13;  // more than fprop_small_c takes
  auto const p = problem(forward, TensorFormat::nhwc, geometry);
  PlanOptions options;
  auto const plan = make_plan(p, described_h200(), options);
  EXPECT_EQ(plan.kernel, kernel);
  EXPECT_TRUE(std::get<PackRecipe>(plan.recipe.own).image);
  EXPECT_EQ(plan.workspace_bytes, std::get<PackRecipe>(plan.recipe.own).end);
  options.max_workspace = 1 << 20;
  auto const small = make_plan(p, described_h200(), options);
  EXPECT_NE(small.kernel, kernel);
  EXPECT_LE(small.workspace_bytes, options.max_workspace);
}

TEST(PackedWindows, WhatLiesWellIsNotPacked) {
  Geometry geometry = first_layer();
  geometry.c = geometry.k = 128, geometry.stride[0] = geometry.stride[1] = 2;
  auto const plan = make_plan(problem(forward, TensorFormat::nhwc, geometry), described_h200(), {});
  EXPECT_EQ(plan.kernel, kernel);
  EXPECT_FALSE(std::get<PackRecipe>(plan.recipe.own).image);
  EXPECT_FALSE(std::get<PackRecipe>(plan.recipe.own).other);
}

TEST(PackedWindows, DataGradientsInTensorFloatsReachWgmma) {
  for (Index const stride : {1, 2}) {
    Geometry geometry = first_layer();
    geometry.c = geometry.k = 128, geometry.h = geometry.w = 56;
    geometry.stride[0] = geometry.stride[1] = stride;
    for (char const* const name : {"h100", "h200"}) {
      Device device = described_h200();
      device.gpu = describe_gpu(name);
      auto const plan = make_plan(problem(data, TensorFormat::nhwc, geometry, DataType::tf32), device, {});
      EXPECT_EQ(plan.kernel, kernel);
      EXPECT_TRUE(std::get<PackRecipe>(plan.recipe.own).other);
      EXPECT_FALSE(std::get<PackRecipe>(plan.recipe.own).image);
    }
  }
}

TEST(PackedWindows, ComposedKernelsCompileWithoutSpills) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  Geometry geometry = first_layer();
  geometry.h = geometry.w = 56;
  auto const filter = problem(ConvolutionDirection::filter, TensorFormat::nhwc, geometry);
  for (ConvolutionProblem const& p :
       {with_epilogue(problem(forward, TensorFormat::nhwc, geometry)),
        with_epilogue(problem(forward, TensorFormat::nchw, geometry)), filter}) {
    bool const is_filter = p.direction == ConvolutionDirection::filter;
    PlanOptions options;
    options.kernel = kernel;
    options.policy = is_filter ? "medium" : "tall_turns";
    auto const plan = make_plan(p, described_h200(), options);
    EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0);
    std::vector<jit::Source> const passes = passes_of(plan);
    ASSERT_EQ(passes.size(), is_filter ? 2u : 1u);
    for (jit::Source const& pass : passes) EXPECT_EQ(jit::compile(pass).local_bytes, 0);
  }
}

}  // namespace
}  // namespace cosmati
