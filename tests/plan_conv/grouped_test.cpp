// Convolutions with groups of few channels on tensor cores: in the emulator, against the reference;
// rejections, the choice for a GPU, and composed kernels.
#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/filter/grouped_filter.h"
#include "src/plan/conv/grouped/grouped.h"
#include "tests/plan/convolution_cases.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

constexpr auto forward = ConvolutionDirection::forward, data = ConvolutionDirection::data,
               filter = ConvolutionDirection::filter;
constexpr char const* kernel = "grouped";

ConvolutionProblem problem(ConvolutionDirection direction, Geometry const& geometry) {
  return problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nhwc, geometry);
}

ConvolutionProblem with_epilogue(ConvolutionProblem p) {
  p.epilogue.expression =
      epilogue::parse("relu(acc + bias[k] - rest[n, k, p, q])", epilogue::convolution_indices);
  p.epilogue.operands = {describe(DataType::f32, {p.y.extent(1)}), p.y};
  return p;
}

// Groups of 4, 8 and 16 channels, more groups than a block has and a part of its groups, strides,
// dilation and uneven padding, images smaller than a tile and several in one.
std::vector<Geometry> groups_of_few_channels() {
  Geometry four, eight, sixteen, several, dilated, long_rows;
  four.n = 2, four.c = four.k = 72, four.groups = 18, four.h = 9, four.w = 21;
  for (Index* pad : {four.pad_begin, four.pad_end}) pad[0] = pad[1] = 1;
  eight = four, eight.c = eight.k = 24, eight.groups = 3, eight.stride[0] = eight.stride[1] = 2;
  sixteen = four, sixteen.c = 32, sixteen.k = 16, sixteen.groups = 2, sixteen.pad_begin[1] = 2;
  several = four, several.n = 5, several.c = several.k = 32, several.groups = 2, several.h = several.w = 7;
  dilated = eight, dilated.stride[0] = dilated.stride[1] = 1, dilated.dilation[0] = 2,
  dilated.dilation[1] = 3;
  long_rows = eight, long_rows.r = 1, long_rows.s = 3, long_rows.stride[0] = 1, long_rows.stride[1] = 3;
  long_rows.w = 40;
  return {four, eight, sixteen, several, dilated, long_rows};
}

TEST(Grouped, EveryGeometryAndDirection) {
  for (Geometry const& geometry : groups_of_few_channels()) {
    expect_right(problem(forward, geometry), kernel);
    expect_right(with_epilogue(problem(forward, geometry)), kernel);
    if (geometry.stride[0] == 1 || geometry.dilation[0] == 1) expect_right(problem(data, geometry), kernel);
    expect_right(problem(filter, geometry), kernel);
  }
}

// In tf32 a quad is two channels, and filter gradients load single elements.
TEST(Grouped, Tf32InEveryGeometry) {
  auto const in_tf32 = [](ConvolutionDirection direction, Geometry const& geometry) {
    return problem_of(direction, DataType::tf32, DataType::f32, TensorFormat::nhwc, geometry);
  };
  for (Geometry const& geometry : groups_of_few_channels()) {
    ConvolutionProblem strided = in_tf32(forward, geometry);
    expect_right(with_epilogue(strided), kernel);
    for (int d : {0, 2, 3}) strided.w.layout.stride[d] = strided.w.layout.stride[d] * 3;
    strided.w.layout.stride[1] = 3;
    expect_right(strided, kernel);
    if (geometry.stride[0] == 1 || geometry.dilation[0] == 1) expect_right(in_tf32(data, geometry), kernel);
    expect_right(in_tf32(filter, geometry), kernel);
  }
  Geometry wide = groups_of_few_channels().front();
  wide.c = wide.k = 128, wide.groups = 2;
  EXPECT_EQ(refusal_of(in_tf32(forward, wide), kernel),
            "groups of 64 and 64 channels; both must be multiples of 4, and at most 32");
  ConvolutionProblem odd = in_tf32(forward, groups_of_few_channels().front());
  for (int d : {0, 2}) odd.x.layout.stride[d] = odd.x.layout.stride[d] / 72 * 74;
  odd.x.layout.stride[3] = 74;
  EXPECT_EQ(refusal_of(odd, kernel), "the image's pixels are not multiples of 16 bytes apart");
}

TEST(Grouped, RefusalsHoldTheNumbers) {
  auto const refusal = [](ConvolutionDirection direction, Geometry const& geometry, DataType type,
                          TensorFormat format) {
    return plan::grouped_plan(problem_of(direction, type, type, format, geometry), emulated_device()).refusal;
  };
  auto const expect = [](std::string const& sentence, char const* part) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  };
  Geometry const four = groups_of_few_channels().front();
  Geometry one = four, odd = four, wide = four, strided = four;
  one.groups = 1, odd.c = 108, wide.c = wide.k = 256, wide.groups = 2;
  strided.stride[0] = 2, strided.dilation[0] = 2;
  EXPECT_EQ(refusal(forward, four, DataType::f16, TensorFormat::nhwc), "");
  expect(refusal(forward, one, DataType::f16, TensorFormat::nhwc), "there is one group");
  expect(refusal(forward, odd, DataType::f16, TensorFormat::nhwc), "groups of 6 and 4 channels");
  expect(refusal(forward, wide, DataType::f16, TensorFormat::nhwc), "at most 64");
  expect(refusal(data, strided, DataType::f16, TensorFormat::nhwc), "stride 2 and dilation 2");
  expect(refusal(forward, four, DataType::f32, TensorFormat::nhwc), "not f32 and f32");
  expect(refusal(forward, four, DataType::f16, TensorFormat::nchw), "must be contiguous");
  PlanOptions options;
  options.kernel = kernel;
  options.policy = "large";
  EXPECT_THROW(make_plan(problem(forward, four), emulated_device(), options), Error);
}

// The layers of ResNeXt-50 (32x4d): the choice where there is no wgmma, and kernels without spilled
// registers.
TEST(Grouped, ThePlannerTakesItForResNeXtAndItCompilesWithoutSpills) {
  Device const a100 = testing::gpu_device("a100");
  for (auto const& [channels, size] : {std::pair{128, 56}, {256, 28}, {512, 14}, {1024, 7}})
    for (ConvolutionDirection const direction : {forward, data, filter}) {
      Geometry layer;
      layer.n = 64, layer.groups = 32, layer.c = layer.k = channels, layer.h = layer.w = size;
      for (Index* pad : {layer.pad_begin, layer.pad_end}) pad[0] = pad[1] = 1;
      auto const plan = make_plan(problem(direction, layer), a100);
      EXPECT_EQ(plan.kernel, kernel) << channels << " channels";
      auto const in_tf32 =
          make_plan(problem_of(direction, DataType::tf32, DataType::f32, TensorFormat::nhwc, layer), a100);
      EXPECT_EQ(in_tf32.kernel, kernel) << channels << " channels in tf32";
      if (size != 28 || !jit::nvrtc_available()) continue;
      for (auto const* each : {&plan, &in_tf32}) EXPECT_EQ(jit::compile(main_source(*each)).local_bytes, 0);
    }
}

}  // namespace
}  // namespace cosmati
