// Filters of one tap by the kernels for few channels, which take all pixels for one row: in the emulator,
// against the reference.
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

constexpr auto forward = ConvolutionDirection::forward, filter = ConvolutionDirection::filter;

// Filters of one tap, with several tiles of which the last is partial: channels of whole units and others,
// results that are collected in shared memory and others.
std::vector<Geometry> pointwise_layers() {
  std::vector<Geometry> layers;
  for (int const c : {16, 24, 17})
    for (int const k : {6, 8, 17, 40}) {
      Geometry layer;
      layer.n = 3, layer.c = c, layer.k = k, layer.r = layer.s = 1, layer.h = 7, layer.w = 9;
      layers.push_back(layer);
    }
  return layers;
}

TEST(OneTap, Forward) {
  for (Geometry const& geometry : pointwise_layers()) {
    auto const p = problem_of(forward, DataType::f16, DataType::f16, TensorFormat::nhwc, geometry);
    expect_right(p, "fprop_small_c");
    expect_right(with_forward_epilogue(p), "fprop_small_c");
  }
}

// Images of one pixel or one column, where a stride skips nothing, and an output that is only padding.
std::vector<Geometry> small_images() {
  Geometry pixel, column, padded;
  for (Geometry* image : {&pixel, &column, &padded}) image->n = 5, image->k = 8, image->r = image->s = 1;
  pixel.h = pixel.w = 1, pixel.stride[0] = pixel.stride[1] = 2;
  column.h = 5, column.w = 1, column.stride[1] = 2;
  padded.h = 1, padded.w = 2, padded.stride[1] = 2, padded.pad_end[1] = 1;
  return {pixel, column, padded};
}

TEST(OneTap, StridesThatSkipNothing) {
  for (Geometry geometry : small_images())
    for (int const c : {3, 16}) {
      geometry.c = c;
      if (c == 16 && geometry.w == 2) continue;
      expect_right(problem_of(forward, DataType::f16, DataType::f16, TensorFormat::nhwc, geometry),
                   "fprop_small_c");
    }
}

// Images last in y, so that its pixels are in another order than those of x.
TEST(OneTap, ResultsInAnotherOrder) {
  for (int const c : {3, 16}) {
    Geometry geometry = pointwise_layers().front();
    geometry.c = c, geometry.k = 8;
    auto p = problem_of(forward, DataType::f16, DataType::f16, TensorFormat::nhwc, geometry);
    Index const n = p.y.extent(0), k = p.y.extent(1), w = p.y.extent(3);
    p.y.layout.stride[0] = k, p.y.layout.stride[2] = w * n * k, p.y.layout.stride[3] = n * k;
    if (c == 3)
      expect_right(with_forward_epilogue(p), "fprop_small_c");
    else
      EXPECT_NE(refusal_of(p, "fprop_small_c"), "");
  }
}

// Pixels that are not at equal distances, in x or in y.
TEST(OneTap, Gaps) {
  for (int const c : {16, 17})
    for (bool const of_x : {true, false}) {
      Geometry geometry = pointwise_layers().front();
      geometry.c = c;
      auto p = problem_of(forward, DataType::f16, DataType::f16, TensorFormat::nhwc, geometry);
      Layout& layout = (of_x ? p.x : p.y).layout;
      layout.stride[2] += layout.stride[3] * 8, layout.stride[0] += layout.stride[3] * 8 * layout.shape[2];
      if (of_x)
        EXPECT_NE(refusal_of(p, "fprop_small_c"), "");
      else
        expect_right(p, "fprop_small_c");
    }
}

// Several bands of channels, channels that are not whole units in either tensor, and more stages of pixels
// than a block holds, of which the last is partial.
TEST(OneTap, PointwiseFilterGradients) {
  for (auto const& [c, k, height] : {std::tuple{8, 8, 7},
                                     {24, 40, 7},
                                     {96, 16, 7},
                                     {16, 72, 7},
                                     {17, 16, 7},
                                     {48, 29, 7},
                                     {88, 120, 20},
                                     {16, 16, 61}}) {
    Geometry geometry = pointwise_layers().front();
    geometry.c = c, geometry.k = k, geometry.h = height, geometry.w = height + 2;
    SCOPED_TRACE(std::to_string(c) + " channels, " + std::to_string(k) + " filters");
    expect_right(problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry),
                 "wgrad_pointwise");
  }
}

// Pixels of x, or of dy, that are further apart than their channels.
TEST(OneTap, PointwiseFilterGradientsOfGaps) {
  for (bool const of_x : {true, false})
    for (int const c : {16, 72}) {
      Geometry geometry = pointwise_layers().front();
      geometry.c = c, geometry.k = 24;
      auto p = problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry);
      Layout& layout = (of_x ? p.x : p.y).layout;
      for (int d : {0, 2, 3}) layout.stride[d] = layout.stride[d] / layout.shape[1] * (layout.shape[1] + 8);
      expect_right(p, "wgrad_pointwise");
    }
}

TEST(OneTap, PointwiseFilterGradientsThatAreRefused) {
  Geometry geometry = pointwise_layers().front();
  geometry.c = 17, geometry.k = 29;
  auto const of = [&] {
    return problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry);
  };
  EXPECT_NE(refusal_of(of(), "wgrad_pointwise").find("one of them must be in units of 8"), std::string::npos);
  geometry.c = 16, geometry.stride[0] = 2;
  EXPECT_NE(refusal_of(of(), "wgrad_pointwise").find("without stride"), std::string::npos);
  geometry.stride[0] = 1;
  auto p = of();
  p.y.alignment = 2;
  EXPECT_NE(refusal_of(p, "wgrad_pointwise").find("dy: aligned to 2 bytes"), std::string::npos);
  p = of();
  p.x.layout.stride[2] += 16, p.x.layout.stride[0] += 16 * p.x.extent(2);
  EXPECT_NE(refusal_of(p, "wgrad_pointwise").find("at equal distances"), std::string::npos);
  p = of();
  p.y.layout = image_layout(TensorFormat::nchw, p.y.extent(0), p.y.extent(1), p.y.extent(2), p.y.extent(3));
  EXPECT_NE(refusal_of(p, "wgrad_pointwise"), "");
  geometry.r = 3, geometry.pad_begin[0] = geometry.pad_end[0] = 1;
  EXPECT_NE(refusal_of(of(), "wgrad_pointwise").find("one tap"), std::string::npos);
}

// The fastest kernels as measured on an H200 (docs/decisions/0026): few channels of many pixels, or channels
// in units of neither 8 nor 64, are copied once for all; tiles of 64 channels otherwise.
TEST(OneTap, FilterGradientsByTheFastestKernel) {
  struct Layer {
    int images, c, side, k;
    char const* kernel;
  };
  for (Layer const& layer : {Layer{64, 72, 56, 24, "wgrad_pointwise"},
                             {64, 24, 56, 144, "wgrad_pointwise"},
                             {32, 256, 56, 17, "wgrad_pointwise"},
                             {64, 16, 112, 96, "wgrad_pointwise"},
                             {64, 64, 14, 384, "wgrad_taps"},
                             {64, 160, 7, 960, "gemm"},
                             {64, 320, 7, 1280, "gemm"}}) {
    Geometry geometry = pointwise_layers().front();
    geometry.n = layer.images, geometry.c = layer.c, geometry.k = layer.k;
    geometry.h = geometry.w = layer.side;
    auto const p = problem_of(filter, DataType::f16, DataType::f16, TensorFormat::nhwc, geometry);
    EXPECT_EQ(make_plan(p, described_h200()).kernel, layer.kernel) << layer.c << " to " << layer.k;
  }
}

TEST(OneTap, FilterGradientsWithStrides) {
  for (Geometry geometry : small_images()) {
    geometry.c = 3;
    expect_right(problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry),
                 "wgrad_small_c");
  }
}

}  // namespace
}  // namespace cosmati
