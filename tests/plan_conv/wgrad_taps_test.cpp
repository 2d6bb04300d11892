// Filter gradients with all taps from one copy of x: in the emulator against the reference, also with
// infinities beside the rows' ends; the shapes of plans; and composed kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/filter/wgrad_taps.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

constexpr char const* kernel = "wgrad_taps";

Geometry geometry_of(Index n, Index c, Index k, Index h, Index w, Index taps, Index pad, Index stride = 1,
                     Index dilation = 1) {
  Geometry g;
  g.n = n, g.c = c, g.k = k, g.h = h, g.w = w, g.r = g.s = taps;
  for (int i : {0, 1}) g.stride[i] = stride, g.dilation[i] = dilation, g.pad_begin[i] = g.pad_end[i] = pad;
  return g;
}
ConvolutionProblem problem(Geometry const& geometry, DataType type = DataType::f16) {
  return problem_of(ConvolutionDirection::filter, type, type, TensorFormat::nhwc, geometry);
}
WgradTapsRecipe const& recipe_of(Plan<ConvolutionProblem> const& plan) {
  return std::get<WgradTapsRecipe>(plan.recipe.own);
}
Plan<ConvolutionProblem> plan_of(ConvolutionProblem const& p, Backend backend) {
  Device device = emulated_device();
  device.backend = backend;
  PlanOptions options;
  options.kernel = kernel;
  return make_plan(p, device, options);
}

// One geometry for each shape of the catalogue.
std::vector<Geometry> geometries_of_shapes() {
  return {
      geometry_of(2, 72, 40, 7, 16, 3, 1),       // 16 outputs of a row
      geometry_of(1, 16, 72, 6, 24, 3, 1),       // of two rows
      geometry_of(2, 8, 8, 7, 7, 3, 1),          // the last row alone
      geometry_of(3, 24, 8, 5, 8, 3, 1),         // of two images or rows
      geometry_of(2, 64, 24, 13, 13, 3, 1, 2),   // strides
      geometry_of(3, 16, 8, 5, 16, 3, 1, 2),     // strides, and an odd number of images
      geometry_of(1, 8, 16, 9, 15, 2, 1, 1, 2),  // dilations
      geometry_of(2, 136, 8, 4, 14, 3, 1),       // more than two tiles of channels
      geometry_of(2, 8, 16, 8, 16, 5, 2),        // groups of taps
  };
}

TEST(WgradTaps, EveryShapeMatchesTheReference) {
  for (Geometry const& geometry : geometries_of_shapes()) expect_right(problem(geometry), kernel);
}

TEST(WgradTaps, FiltersInEveryLayout) {
  for (TensorFormat const format : formats)
    for (DataType const type : {DataType::f16, DataType::f32}) {
      auto p = problem(geometry_of(2, 24, 16, 6, 8, 3, 1));
      p.w = describe(type, image_layout(format, 16, 24, 3, 3));
      expect_right(p, kernel);
    }
}

Tensor gradient(ConvolutionProblem const& p, Device const& device, char const* name, Tensor const& x) {
  PlanOptions options;
  options.kernel = name;
  auto const prepared = prepare(make_plan(p, device, options));
  Tensor const dy = filled(p.y, 3);
  Tensor dw = filled(p.w, 9), workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
  ConvolutionProblem::Arguments arguments;
  arguments.x = x.data(), arguments.dy = dy.data(), arguments.dw = dw.data();
  prepared.run(arguments, workspace.data());
  return dw;
}

// Channels and filters per group, and groups.
struct Groups {
  Index channels, filters, groups;
};
Geometry grouped(Groups const& of, Index h = 6, Index w = 8, Index stride = 1) {
  Geometry g = geometry_of(2, of.channels * of.groups, of.filters * of.groups, h, w, 3, 1, stride);
  g.groups = of.groups;
  return g;
}

TEST(WgradTaps, Groups) {
  for (Groups const& of : {Groups{8, 8, 8}, {24, 24, 6}, {4, 12, 6}, {40, 16, 7}, {72, 8, 2}, {8, 136, 2}})
    expect_right(problem(grouped(of)), kernel);
  for (Groups const& of : {Groups{4, 4, 32}, {32, 32, 3}})
    expect_right(problem(grouped(of, 13, 13, 2)), kernel);
}

TEST(WgradTaps, GroupsOfFiltersInEveryLayout) {
  Geometry const geometry = grouped({8, 24, 4});
  for (TensorFormat const format : formats) {
    auto p = problem(geometry);
    p.w = describe(DataType::f32, image_layout(format, 96, 8, 3, 3));
    expect_right(p, kernel);
  }
}

// Channels of several groups are in one product; an infinity of one must not reach the others' weights.
TEST(WgradTaps, InfinitiesDoNotSpreadToOtherGroups) {
  auto const p = problem(grouped({8, 8, 4}));
  Tensor x = filled(p.x, 1);
  store(p.x.type, x.data(), 100, std::numeric_limits<double>::infinity());
  Tensor const ours = gradient(p, emulated_device(), kernel, x),
               expected = gradient(p, this_device(Backend::reference), "", x);
  for (Index i = 0; i < ours.layout().span(); ++i) {
    double const a = load(ours.type(), ours.data(), i), b = load(expected.type(), expected.data(), i);
    ASSERT_EQ(std::isfinite(a), std::isfinite(b)) << "element " << i;
  }
}

TEST(WgradTaps, PartsAreAddedInAFixedOrder) {
  auto const plan = plan_of(problem(geometry_of(4, 8, 8, 8, 8, 3, 1)), Backend::emulator);
  EXPECT_EQ(recipe_of(plan).parts, 3);
  EXPECT_EQ(plan.workspace_bytes, 3u * 64 * 9 * 64 * sizeof(float));  // complete tiles
}

// A side of the image is infinite: with padding, one row or column of taps never meets it.
TEST(WgradTaps, InfinitiesDoNotSpreadToOtherTaps) {
  for (Geometry geometry : geometries_of_shapes())
    for (int const side : {1, 2, 3}) {  // left, bottom, right
      geometry.c = geometry.k = 8;
      auto const p = problem(geometry);
      Tensor x = filled(p.x, 1);
      Index const extent[2] = {geometry.h, geometry.w}, along = side % 2;
      Index const* const stride = p.x.layout.stride + 2;
      Index const first =
          (geometry.n - 1) * p.x.layout.stride[0] + 3 + (side < 2 ? 0 : extent[along] - 1) * stride[along];
      for (Index i = 0; i < extent[1 - along]; ++i)
        store(p.x.type, x.data(), first + i * stride[1 - along], std::numeric_limits<double>::infinity());
      Tensor const ours = gradient(p, emulated_device(), kernel, x),
                   expected = gradient(p, this_device(Backend::reference), "", x);
      for (Index i = 0; i < ours.layout().span(); ++i) {
        double const a = load(ours.type(), ours.data(), i), b = load(expected.type(), expected.data(), i);
        // Infinity times a zero of dy is not a number.
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
            << a << " instead of " << b << ", element " << i << ", side " << side << " of " << geometry.h
            << "x" << geometry.w;
      }
    }
}

TEST(WgradTaps, ZerosLeadWhereXExistsBesideTheRow) {
  WgradTapsShape shape;
  shape.across = 16;
  plan::LeadingPadding same = plan::leading_padding(problem(geometry_of(1, 8, 8, 14, 14, 3, 1)), shape);
  EXPECT_TRUE(same.possible);
  EXPECT_EQ(same.zeros, 2);
  EXPECT_EQ(same.taps, 1);
  // Without padding, x exists on both sides of the middle tap's rows.
  EXPECT_FALSE(plan::leading_padding(problem(geometry_of(1, 8, 8, 14, 14, 3, 0)), shape).possible);
  // Full rows have no zeros; neither do rows that several chunks share.
  EXPECT_EQ(plan::leading_padding(problem(geometry_of(1, 8, 8, 14, 32, 3, 1)), shape).zeros, 0);
  EXPECT_FALSE(plan::leading_padding(problem(geometry_of(1, 8, 8, 14, 28, 3, 1)), shape).possible);
  // There are zeros for 8 columns before a row.
  EXPECT_FALSE(plan::leading_padding(problem(geometry_of(1, 8, 8, 7, 7, 3, 1)), shape).possible);
}

TEST(WgradTaps, ChosenForLayersOfManyChannels) {
  for (Geometry const& geometry :
       {geometry_of(64, 64, 64, 224, 224, 3, 1), geometry_of(64, 256, 256, 56, 56, 3, 1)}) {
    auto p = problem(geometry);
    Device device = emulated_device();
    device.backend = Backend::cuda;
    auto const plan = make_plan(p, device, {});
    EXPECT_EQ(plan.kernel, kernel);
    WgradTapsRecipe const& recipe = recipe_of(plan);
    EXPECT_LE(recipe.shape.shared_bytes(), device.gpu.shared_bytes_per_block);
    EXPECT_GE(recipe.shape.stages, 2);
    EXPECT_EQ(plan.workspace_bytes,
              static_cast<std::size_t>(recipe.parts * p.w.layout.size()) * sizeof(float));
    PlanOptions small;
    small.max_workspace = 100'000;
    EXPECT_LE(make_plan(p, device, small).workspace_bytes, small.max_workspace);
  }
}

TEST(WgradTaps, RefusalsSayWhatIsMissing) {
  auto const refusal = [](ConvolutionProblem const& p, Backend backend = Backend::cuda) -> std::string {
    try {
      plan_of(p, backend);
    } catch (Error const& error) {
      return error.what();
    }
    return {};
  };
  auto const says = [](std::string const& text, char const* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(refusal(problem(grouped({6, 8, 4}))), "groups of 6 channels; supported: multiples of 4");
  says(refusal(problem(geometry_of(2, 64, 64, 8, 8, 3, 1), DataType::f32)), "supported: f16 or bf16");
  says(refusal(problem(geometry_of(2, 64, 64, 16, 16, 3, 1, 3))), "a stride of 3; supported: 1 and 2");
  says(refusal(problem(geometry_of(2, 12, 64, 8, 8, 3, 1))), "TMA requires positive multiples of 8");
  says(refusal(problem(geometry_of(2, 64, 64, 8, 9, 3, 0))), "too little padding around x");
  says(refusal(problem_of(ConvolutionDirection::filter, DataType::f16, DataType::f16, TensorFormat::nchw,
                          geometry_of(2, 64, 64, 8, 8, 3, 1))),
       "(channels last)");
  says(refusal(problem(geometry_of(2, 64, 64, 9, 9, 4, 1)), Backend::emulator), "filters of 3x3 taps");
  EXPECT_EQ(refusal(problem(geometry_of(2, 64, 64, 9, 9, 4, 1))), "");
}

TEST(WgradTaps, ComposedKernelsCompileWithoutSpills) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  for (Geometry const& geometry :
       {geometry_of(8, 128, 128, 55, 55, 3, 1), geometry_of(64, 128, 128, 56, 56, 3, 1, 2)}) {
    auto const plan = plan_of(problem(geometry, DataType::bf16), Backend::cuda);
    EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0);
    for (jit::Source const& pass : passes_of(plan)) EXPECT_EQ(jit::compile(pass).local_bytes, 0);
  }
}

}  // namespace
}  // namespace cosmati
