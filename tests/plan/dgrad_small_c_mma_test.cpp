// Data gradients with few channels on tensor cores: in the emulator, against the reference; rejections, the
// choice for a GPU, and composed kernels.
#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/dgrad_small_c_mma.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

constexpr auto data = ConvolutionDirection::data;
constexpr char const *kernel = "dgrad_small_c", *policy = "multiply=mma";

ConvolutionProblem with_epilogue(ConvolutionProblem p) {
  p.epilogue.expression =
      epilogue::parse("relu(acc + bias[k] - rest[n, k, p, q])", epilogue::convolution_indices);
  p.epilogue.operands = {describe(DataType::f32, {p.x.extent(1)}), p.x};
  return p;
}

// One chunk of channels and several, phases without a tap, dilation, images smaller than a tile and larger.
std::vector<Geometry> few_channels() {
  Geometry first, generator, sparse, dilated, deep, one;
  first.c = 3, first.k = 16, first.h = 13, first.w = 21;
  for (Index* pad : {first.pad_begin, first.pad_end}) pad[0] = pad[1] = 1;
  generator = first, generator.r = generator.s = 5, generator.h = 20, generator.w = 18, generator.k = 24;
  generator.stride[0] = generator.stride[1] = 2, generator.pad_end[0] = generator.pad_end[1] = 2;
  sparse = first, sparse.c = 8, sparse.r = 1, sparse.s = 2, sparse.stride[0] = 2, sparse.stride[1] = 3;
  dilated = first, dilated.c = 5, dilated.dilation[0] = 2, dilated.stride[1] = 2, dilated.dilation[1] = 3;
  dilated.w = 30;
  deep = first, deep.k = 72, deep.c = 1, deep.h = 5;
  one.c = one.n = 1, one.k = 8, one.r = one.s = one.h = one.w = 1;
  return {first, generator, sparse, dilated, deep, one};
}

TEST(DgradSmallCMma, EveryGeometry) {
  for (Geometry const& geometry : few_channels())
    for (DataType const type : {DataType::f16, DataType::tf32}) {
      auto const p = problem_of(data, type, type, TensorFormat::nhwc, geometry);
      expect_right(p, kernel, policy);
      expect_right(with_epilogue(p), kernel, policy);
    }
}

// dx with contiguous pixels, whose channels are m; filters in any order.
TEST(DgradSmallCMma, EveryLayoutOfTheResultAndTheFilter) {
  Geometry const geometry = few_channels()[1];
  for (TensorFormat const result : {TensorFormat::nchw, TensorFormat::chwn})
    for (TensorFormat const filter : {TensorFormat::nchw, TensorFormat::chwn}) {
      auto p = problem_of(data, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry);
      p.x.layout = image_layout(result, p.x.extent(0), p.x.extent(1), p.x.extent(2), p.x.extent(3));
      p.w.layout = image_layout(filter, p.w.extent(0), p.w.extent(1), p.w.extent(2), p.w.extent(3));
      expect_right(with_epilogue(p), kernel, policy);
    }
}

TEST(DgradSmallCMma, RefusalsHoldTheNumbers) {
  auto const refusal = [](Geometry const& geometry, DataType type, TensorFormat format,
                          ConvolutionDirection direction = data) {
    return plan::cell_plan(problem_of(direction, type, type, format, geometry), emulated_device()).refusal;
  };
  auto const expect = [](std::string const& sentence, char const* part) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  };
  Geometry many = few_channels().front(), odd = many, groups = many;
  many.c = 9, odd.k = 12, groups.groups = 2, groups.c = 4;
  EXPECT_EQ(refusal(few_channels().front(), DataType::f16, TensorFormat::nhwc), "");
  expect(refusal(many, DataType::f16, TensorFormat::nhwc), "9 channels of dx; an mma has 8 columns");
  expect(refusal(odd, DataType::f16, TensorFormat::nhwc), "not in units of 16 bytes (8 elements)");
  expect(refusal(groups, DataType::f16, TensorFormat::nhwc), "2 groups");
  expect(refusal(odd, DataType::f32, TensorFormat::nhwc), "not f32 and f32");
  expect(refusal(odd, DataType::f16, TensorFormat::nchw), "(channels last)");
  expect(refusal(few_channels().front(), DataType::f16, TensorFormat::nhwc, ConvolutionDirection::forward),
         "a data gradient");
  PlanOptions options;
  options.kernel = kernel;
  for (char const* const other : {"multiply=wgmma", "large"}) {
    options.policy = other;
    EXPECT_THROW(
        make_plan(problem_of(data, DataType::f16, DataType::f16, TensorFormat::nhwc, few_channels().front()),
                  emulated_device(), options),
        Error);
  }
}

// The layers of three channels of VGG-16, ResNet-50 and DCGAN.
TEST(DgradSmallCMma, ThePlannerTakesItForThreeChannelsAndItCompilesWithoutSpills) {
  Geometry vgg, stem, generator;
  vgg.n = stem.n = 64, vgg.c = stem.c = 3, vgg.k = stem.k = 64, vgg.h = vgg.w = stem.h = stem.w = 224;
  stem.r = stem.s = 7, stem.stride[0] = stem.stride[1] = 2;
  generator.n = 1024, generator.c = 3, generator.k = 64, generator.h = generator.w = 64;
  generator.r = generator.s = 5, generator.stride[0] = generator.stride[1] = 2;
  for (int i : {0, 1}) {
    vgg.pad_begin[i] = vgg.pad_end[i] = generator.pad_begin[i] = 1, generator.pad_end[i] = 2;
    stem.pad_begin[i] = stem.pad_end[i] = 3;
  }
  Device device = emulated_device();
  device.backend = Backend::cuda;
  for (Geometry const& geometry : {vgg, stem, generator})
    for (DataType const type : {DataType::f16, DataType::tf32}) {
      auto const p = problem_of(data, type, type, TensorFormat::nhwc, geometry);
      auto const plan = make_plan(p, device);
      EXPECT_EQ(plan.kernel, kernel);
      EXPECT_TRUE(plan::uses_cells(plan.recipe));
      bool const compiles =
          geometry.r == 7 ? type == DataType::f16 : geometry.r == 5 && type == DataType::tf32;
      if (compiles && jit::nvrtc_available()) {
        EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0);
      }
    }
}

}  // namespace
}  // namespace cosmati
