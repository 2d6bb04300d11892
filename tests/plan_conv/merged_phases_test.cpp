// dgrad_phases: the four phases of a data gradient with stride 2 in one tile; in the emulator, against the
// reference; refusals, prediction and the composed kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/error.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/program.h"
#include "src/plan/conv/windows/merged_phases.h"
#include "tests/plan/convolution_cases.h"
#include "tests/sanitized.h"

namespace cosmati {
namespace {

constexpr char const* kernel = "dgrad_phases";

// 5x5 filters; dx has an even number of rows and columns.
Geometry transposed_layer(Index images, Index channels, Index extent, Index filters) {
  Geometry g;
  g.n = images, g.c = channels, g.k = filters, g.h = g.w = extent, g.r = g.s = 5;
  g.stride[0] = g.stride[1] = 2;
  for (int i : {0, 1}) g.pad_begin[i] = 1, g.pad_end[i] = 2;
  return g;
}
ConvolutionProblem gradient(Geometry const& geometry, DataType type = DataType::f16) {
  return problem_of(ConvolutionDirection::data, type, type, TensorFormat::nhwc, geometry);
}
ConvolutionProblem with_epilogue(ConvolutionProblem p) {
  p.epilogue.expression =
      epilogue::parse("relu(acc + bias[k] - rest[n, k, p, q])", epilogue::convolution_indices);
  p.epilogue.operands = {describe(DataType::f32, {p.x.extent(1)}), p.x};
  return p;
}

// Windows where rows and columns share all taps (2x2), one of two (3x3), and more (5x5, 7x7), with the larger
// phase first and second; channels and cells in full and partial tiles.
std::vector<Geometry> geometries_of_phases() {
  std::vector<Geometry> list;
  for (Index const taps : {2, 3, 5, 7})
    for (Index const pad : {0, 1, 2}) {
      if (taps == 2 && pad == 1) continue;  // its phases have taps at different windows
      Geometry g = transposed_layer(3, 24, 12, 40);
      g.w = 14, g.r = taps, g.s = taps == 7 ? 3 : taps;
      for (int i : {0, 1}) g.pad_begin[i] = pad, g.pad_end[i] = taps == 2 ? pad : 2;
      list.push_back(g);
    }
  list.push_back(transposed_layer(2, 64, 16, 72));
  return list;
}

TEST(MergedPhases, EveryGeometry) {
  test::Sample sample(5);
  for (Geometry const& geometry : geometries_of_phases())
    for (DataType const type : {DataType::f16, DataType::tf32}) {
      if (sample.skips()) continue;
      expect_right(gradient(geometry, type), kernel);
      expect_right(with_epilogue(gradient(geometry, type)), kernel);
    }
}

// Other types of dx, also with sums in f64 for the epilogue.
TEST(MergedPhases, ResultsOfOtherTypes) {
  for (DataType const result : {DataType::f32, DataType::s8}) {
    ConvolutionProblem p = problem_of(ConvolutionDirection::data, DataType::f16, result, TensorFormat::nhwc,
                                      transposed_layer(2, 32, 8, 48));
    expect_right(p, kernel);
    p.epilogue.expression = epilogue::parse("0.125 * (acc + bias[k])", epilogue::convolution_indices);
    p.epilogue.operands = {describe(DataType::f64, {p.x.extent(1)})};
    expect_right(p, kernel);
  }
}

TEST(MergedPhases, FiltersOfEitherOrder) {
  for (DataType const type : {DataType::f16, DataType::tf32}) {
    ConvolutionProblem p = gradient(transposed_layer(2, 32, 8, 48), type);
    p.w.layout = row_major({5, 5, 32, 48}).permuted(3, 2, 0, 1);
    expect_right(p, kernel);
  }
}

// An infinity in dy reaches only the pixels in its windows: no phase multiplies a tap that it does not have.
TEST(MergedPhases, InfinitiesStayInTheirWindows) {
  ConvolutionProblem const p = gradient(transposed_layer(1, 16, 8, 16));
  auto const result = [&](Device const& device, char const* of) {
    PlanOptions options;
    options.kernel = of;
    auto const prepared = prepare(make_plan(p, device, options));
    Tensor w = filled(p.w, 2), dy = filled(p.y, 3), dx = filled(p.x, 9);
    for (Index i = 0; i < w.layout().span(); ++i) store(p.w.type, w.data(), i, 1);
    store(p.y.type, dy.data(), (4 + 1) * 16 + 3, std::numeric_limits<double>::infinity());
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
    prepared.run({.w = w.data(), .dy = dy.data(), .dx = dx.data()}, workspace.data());
    return dx;
  };
  Tensor const ours = result(emulated_device(), kernel),
               expected = result(this_device(Backend::reference), "");
  int finite = 0;
  for (Index i = 0; i < ours.layout().span(); ++i) {
    double const one = load(p.x.type, expected.data(), i);
    finite += std::isfinite(one) ? 1 : 0;
    EXPECT_EQ(load(p.x.type, ours.data(), i), one) << i;
  }
  EXPECT_GT(finite, 0);
  EXPECT_LT(finite, static_cast<int>(ours.layout().span()));
}

TEST(MergedPhases, RefusalsHoldTheReason) {
  auto const expect = [](ConvolutionProblem const& p, std::string const& part) {
    EXPECT_NE(refusal_of(p, kernel).find(part), std::string::npos) << refusal_of(p, kernel);
  };
  Geometry const plain = transposed_layer(4, 64, 16, 64);
  EXPECT_EQ(refusal_of(gradient(plain), kernel), "");
  Geometry dense = plain, odd = plain, even_taps = plain, dilated = plain, single = plain;
  dense.stride[0] = 1, odd.w = 15, dilated.dilation[1] = 3, dilated.pad_begin[1] = 6;
  even_taps.r = even_taps.s = 4, even_taps.pad_end[0] = even_taps.pad_end[1] = 1;
  single.r = single.s = 1;
  expect(gradient(dense), "stride 1x2");
  expect(gradient(odd), "dx of 16x15 pixels");
  expect(gradient(dilated), "dilation 1x3");
  expect(gradient(even_taps), "the largest phase does not have");
  expect(gradient(single), "a 1x1 filter leaves phases without taps");
  expect(problem_of(ConvolutionDirection::data, DataType::f16, DataType::f16, TensorFormat::nchw, plain),
         "expected channels last");
  expect(gradient(plain, DataType::f32), "multiply wgmma does not support f32");
  expect(problem_of(ConvolutionDirection::forward, DataType::f16, DataType::f16, TensorFormat::nhwc, plain),
         "computes only data gradients");
  expect(problem_of(ConvolutionDirection::filter, DataType::tf32, DataType::f32, TensorFormat::nchw, plain),
         "computes only data gradients");
  PlanOptions options;
  options.kernel = kernel;
  for (char const* const policy : {"cluster_m=2", "block_n=16,warp_n=16,thread_n=4,block_k=16"}) {
    options.policy = policy;
    EXPECT_THROW(make_plan(gradient(plain), described_h200(), options), Error);
  }
}

// Measured on an H200 with 256 images: 50 us instead of 64 in bf16 (docs/decisions/0019); with 3x3 taps, of
// which the phases share fewer, 38 us instead of 35.
TEST(MergedPhases, ChosenWherePhasesShareMostWindows) {
  EXPECT_EQ(
      make_plan(gradient(transposed_layer(256, 64, 32, 128), DataType::bf16), described_h200(), {}).kernel,
      kernel);
  EXPECT_EQ(
      make_plan(gradient(transposed_layer(256, 64, 32, 128), DataType::tf32), described_h200(), {}).kernel,
      kernel);
  Geometry g = transposed_layer(64, 128, 56, 128);
  g.r = g.s = 3, g.pad_end[0] = g.pad_end[1] = 1;
  EXPECT_EQ(make_plan(gradient(g, DataType::bf16), described_h200(), {}).kernel, "warp_specialized");
}

TEST(MergedPhases, ComposedKernelsCompileWithoutSpills) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  for (DataType const type : {DataType::bf16, DataType::tf32})
    for (bool const with_operands : {false, true}) {
      ConvolutionProblem p = gradient(transposed_layer(256, 64, 32, 128), type);
      if (with_operands) {
        p = with_epilogue(p);
        p.w.layout = row_major({5, 5, 64, 128}).permuted(3, 2, 0, 1);
      }
      PlanOptions options;
      options.kernel = kernel;
      EXPECT_EQ(jit::compile(main_source(make_plan(p, described_h200(), options))).local_bytes, 0);
    }
}

}  // namespace
}  // namespace cosmati
