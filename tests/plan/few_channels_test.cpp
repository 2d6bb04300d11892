// Convolutions with few channels and their gradients on tensor cores: in the emulator, against the reference;
// rejections, the choice for a GPU, and composed kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "cosmati/epilogue/parse.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/dgrad_small_c_mma.h"
#include "src/plan/conv/filter/wgrad_small_c.h"
#include "src/plan/conv/fprop_small_c.h"
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

// The pixels in a row of a cell are computed together; what reaches one of them must not reach the others.
TEST(DgradSmallCMma, AnInfinityReachesOnlyThePixelsThatItsTapsConnect) {
  Geometry geometry;
  geometry.n = 1, geometry.c = 3, geometry.k = 8, geometry.h = geometry.w = 12, geometry.r = geometry.s = 5;
  for (int i : {0, 1}) geometry.stride[i] = 2, geometry.pad_begin[i] = 1, geometry.pad_end[i] = 2;
  auto const p = problem_of(data, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry);
  PlanOptions options;
  options.kernel = kernel, options.policy = policy;
  auto const plan = make_plan(p, emulated_device(), options);
  Tensor y = filled(p.y, 1), w(p.w), x(p.x);
  for (Index i = 0; i < w.layout().span(); ++i) store(p.w.type, w.data(), i, 1);
  constexpr Index row = 3, column = 2;
  y.set(row * p.y.extent(3) + column, std::numeric_limits<double>::infinity());
  ConvolutionProblem::Arguments arguments;
  arguments.dx = x.data(), arguments.w = w.data(), arguments.dy = y.data();
  prepare(plan).run(arguments, nullptr);
  auto const connected = [](Index pixel, Index position) {
    return 0 <= pixel + 1 - 2 * position && pixel + 1 - 2 * position < 5;
  };
  for (Index h = 0; h < geometry.h; ++h)
    for (Index q = 0; q < geometry.w; ++q) {
      double const found = x.get(h * geometry.w + q);
      EXPECT_EQ(std::isfinite(found), !(connected(h, row) && connected(q, column))) << h << ", " << q;
      EXPECT_FALSE(std::isnan(found)) << h << ", " << q;
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
  // Merged columns would take a fragment for each position of a dilated window.
  Geometry dilated;
  dilated.k = 512, dilated.h = dilated.w = 64;
  for (int i : {0, 1}) dilated.dilation[i] = dilated.pad_begin[i] = dilated.pad_end[i] = 4;
  Device device = emulated_device();
  device.backend = Backend::cuda;
  EXPECT_EQ(
      plan::cell_plan(problem_of(data, DataType::f16, DataType::f16, TensorFormat::nhwc, dilated), device)
          .refusal,
      "");
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

constexpr auto forward = ConvolutionDirection::forward;

// Rows of taps with one step and with several, tiles that end inside and outside the image, filters that fill
// less than one band or several bands.
std::vector<Geometry> first_layers() {
  Geometry vgg, stem, generator, speech, digits, one;
  vgg.c = 3, vgg.k = 16, vgg.h = 13, vgg.w = 21;
  stem = vgg, stem.r = stem.s = 7, stem.k = 70;
  generator = vgg, generator.r = generator.s = 5, generator.c = 4, generator.k = 40;
  speech = vgg, speech.c = 1, speech.r = 5, speech.s = 20, speech.w = 33, speech.stride[1] = 3;
  digits = vgg, digits.c = 2, digits.k = 6, digits.r = 2;
  for (Geometry* strided : {&stem, &generator, &speech}) strided->stride[0] = 2;
  stem.stride[1] = generator.stride[1] = 2;
  for (int i : {0, 1}) {
    vgg.pad_begin[i] = vgg.pad_end[i] = generator.pad_begin[i] = 1, generator.pad_end[i] = 2;
    stem.pad_begin[i] = stem.pad_end[i] = 3;
  }
  one.c = one.n = one.k = one.r = one.s = one.h = one.w = 1;
  return {vgg, stem, generator, speech, digits, one};
}

// Channels that fill a pixel's 32 or 48 bytes are copied asynchronously, with a pitch and without.
TEST(FpropSmallC, EveryGeometryOfFullPixels) {
  for (Geometry geometry : first_layers())
    for (DataType const type : {DataType::f16, DataType::tf32})
      for (int const bytes : unfixed_fprop_bytes) {
        if (type == DataType::tf32 && geometry.r * geometry.s == 1) continue;
        geometry.c = bytes / size_of(type);
        expect_right(with_forward_epilogue(problem_of(forward, type, type, TensorFormat::nhwc, geometry)),
                     "fprop_small_c");
      }
}

// Channels in units of 8 and 4 bytes, and zeros up to the next 16 bytes.
TEST(FpropSmallC, EveryGeometryOfPartialPlaces) {
  std::vector<Geometry> layers = first_layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].r * layers[i].s == 1) continue;
    DataType const type = i % 2 == 0 ? DataType::f16 : DataType::tf32;
    for (int const bytes : {24, 36}) {
      layers[i].c = bytes / size_of(type);
      expect_right(with_forward_epilogue(problem_of(forward, type, type, TensorFormat::nhwc, layers[i])),
                   "fprop_small_c");
    }
  }
  // The filter is read along the channels of dx, of which the units of a place have as many as exist.
  Geometry geometry = first_layers().front();
  geometry.c = 16, geometry.k = 18;
  expect_right(problem_of(data, DataType::f16, DataType::f16, TensorFormat::nhwc, geometry), "fprop_small_c");
}

TEST(FpropSmallC, EveryGeometry) {
  for (Geometry const& geometry : first_layers())
    for (DataType const type : {DataType::f16, DataType::tf32}) {
      auto const p = problem_of(forward, type, type, TensorFormat::nhwc, geometry);
      expect_right(p, "fprop_small_c");
      expect_right(with_forward_epilogue(p), "fprop_small_c");
    }
}

// x and the filter in any order; y needs contiguous channels.
TEST(FpropSmallC, EveryLayoutOfTheImageAndTheFilter) {
  for (TensorFormat const image : {TensorFormat::nchw, TensorFormat::chwn})
    for (TensorFormat const filter : {TensorFormat::nchw, TensorFormat::chwn}) {
      auto p = problem_of(forward, DataType::f16, DataType::f32, TensorFormat::nhwc, first_layers()[1]);
      p.x.layout = image_layout(image, p.x.extent(0), p.x.extent(1), p.x.extent(2), p.x.extent(3));
      p.w.layout = image_layout(filter, p.w.extent(0), p.w.extent(1), p.w.extent(2), p.w.extent(3));
      expect_right(with_forward_epilogue(p), "fprop_small_c");
    }
}

// The taps of a row end within a step of an mma, and 18 channels within the place of a pixel; elements of x
// beyond them must not reach the sum.
TEST(FpropSmallC, AnInfinityReachesOnlyTheOutputsWhoseWindowsHoldIt) {
  for (Index const channels : {3, 18}) {
    Geometry geometry;
    geometry.n = 1, geometry.c = channels, geometry.k = 8, geometry.h = 6, geometry.w = 40, geometry.s = 5;
    auto const p = problem_of(forward, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry);
    PlanOptions options;
    options.kernel = "fprop_small_c";
    auto const plan = make_plan(p, emulated_device(), options);
    Tensor x = filled(p.x, 1), w(p.w), y(p.y);
    for (Index i = 0; i < w.layout().span(); ++i) store(p.w.type, w.data(), i, 1);
    constexpr Index column = 20;
    x.set((1 * geometry.h + 3) * geometry.w + column, std::numeric_limits<double>::infinity());
    ConvolutionProblem::Arguments arguments;
    arguments.x = x.data(), arguments.w = w.data(), arguments.y = y.data();
    prepare(plan).run(arguments, nullptr);
    for (Index row = 0; row < p.y.extent(2); ++row)
      for (Index at = 0; at < p.y.extent(3); ++at) {
        bool const holds = row <= 3 && 3 < row + 3 && at <= column && column < at + 5;
        EXPECT_EQ(std::isfinite(y.get(row * p.y.extent(3) + at)), !holds)
            << channels << " channels: " << row << ", " << at;
      }
  }
}

TEST(FpropSmallC, RefusalsHoldTheNumbers) {
  auto const refusal = [](Geometry const& geometry, DataType type, TensorFormat format,
                          ConvolutionDirection direction = forward) {
    return plan::fprop_small_c_plan(problem_of(direction, type, type, format, geometry), emulated_device())
        .refusal;
  };
  auto const expect = [](std::string const& sentence, char const* part) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  };
  Geometry const good = first_layers().front();
  Geometry many = good, groups = good, dilated = good;
  many.c = 9, groups.groups = 2, groups.c = 4, groups.k = 4, dilated.dilation[1] = 2;
  EXPECT_EQ(refusal(good, DataType::f16, TensorFormat::nhwc), "");
  expect(refusal(many, DataType::f16, TensorFormat::nhwc),
         "9 channels of 2 bytes are summed; at most 16 bytes");
  expect(refusal(groups, DataType::f16, TensorFormat::nhwc), "2 groups");
  expect(refusal(dilated, DataType::f16, TensorFormat::nhwc), "dilated");
  Geometry one = good;
  one.c = 16, one.r = one.s = 1;
  expect(refusal(one, DataType::f16, TensorFormat::nhwc),
         "with one tap: of 16, of pixels at equal distances");
  expect(refusal(good, DataType::f32, TensorFormat::nhwc), "not f32 and f32");
  expect(refusal(good, DataType::f16, TensorFormat::nchw), "(channels last)");
  Geometry strided = good;
  strided.stride[0] = 2;
  expect(refusal(strided, DataType::f16, TensorFormat::nhwc, data), "stride 2x1; expected 1x1");
}

// The first layers of VGG-16, ResNet-50, DCGAN's discriminator and of a network for speech.
TEST(FpropSmallC, ThePlannerTakesItForFirstLayersAndItCompilesWithoutSpills) {
  std::vector<Geometry> layers = first_layers();
  layers.resize(4);
  layers[0].n = layers[1].n = 64, layers[2].n = 256, layers[3].n = 16;
  layers[0].h = layers[0].w = layers[1].h = layers[1].w = 224, layers[2].h = layers[2].w = 64;
  layers[3].h = 161, layers[3].w = 700, layers[3].stride[1] = 2, layers[2].c = 3;
  for (Geometry& layer : layers) layer.k = 64;
  layers[3].k = 32;
  Device device = emulated_device();
  device.backend = Backend::cuda;
  for (Geometry const& geometry : layers)
    for (DataType const type : {DataType::bf16, DataType::tf32}) {
      auto const plan = make_plan(problem_of(forward, type, type, TensorFormat::nhwc, geometry), device);
      EXPECT_EQ(plan.kernel, "fprop_small_c");
      if (plan.kernel == "fprop_small_c" && geometry.r != 3 && jit::nvrtc_available()) {
        EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0) << geometry.r << 'x' << geometry.s;
      }
    }
}

// Layers of EfficientNet and MobileNet, whose channels fill neither 64 nor 128 bytes, and a head of 17
// filters.
TEST(FpropSmallC, ThePlannerTakesItForNarrowLayers) {
  Geometry narrow, squeeze, head;
  narrow.n = squeeze.n = 64, narrow.c = narrow.k = squeeze.k = 24, narrow.h = narrow.w = 112;
  for (int i : {0, 1}) narrow.pad_begin[i] = narrow.pad_end[i] = 1;
  squeeze.c = 72, squeeze.h = squeeze.w = 56, squeeze.r = squeeze.s = 1;
  head = squeeze, head.n = 32, head.c = 256, head.k = 17, head.h = 64, head.w = 48;
  Device device = emulated_device();
  device.backend = Backend::cuda;
  for (auto const& [direction, geometry] :
       {std::pair(forward, narrow), {data, narrow}, {forward, squeeze}, {data, squeeze}, {data, head}}) {
    auto const plan =
        make_plan(problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nhwc, geometry), device);
    EXPECT_EQ(plan.kernel, "fprop_small_c");
    if (plan.kernel == "fprop_small_c" && jit::nvrtc_available()) {
      EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0);
    }
  }
}

constexpr auto filter = ConvolutionDirection::filter;

// Filters in units of 16 bytes of dy: less than one band, and several; rows of taps: one band, and several.
std::vector<Geometry> first_gradients() {
  std::vector<Geometry> layers = first_layers();
  layers[1].k = 72, layers[4].k = layers[5].k = 8;
  for (Geometry& layer : layers) layer.k = (layer.k + 7) / 8 * 8;
  layers[3].s = 11, layers[3].stride[1] = 2;
  return layers;
}

TEST(WgradSmallC, EveryGeometry) {
  for (Geometry const& geometry : first_gradients())
    for (DataType const type : {DataType::f16, DataType::tf32})
      expect_right(problem_of(filter, type, DataType::f32, TensorFormat::nhwc, geometry), "wgrad_small_c");
}

// Pixels of 32 or 48 bytes that are copied.
TEST(WgradSmallC, EveryGeometryOfFullPixels) {
  for (Geometry geometry : first_gradients())
    for (int const bytes : unfixed_fprop_bytes) {
      geometry.c = bytes / size_of(DataType::f16);
      if (geometry.s * geometry.c > 15 * 8) continue;  // more tiles of columns than the emulator's kernel has
      expect_right(problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry),
                   "wgrad_small_c");
    }
}

// Pixels of x, and of dy, in units of 8 and 4 bytes.
TEST(WgradSmallC, EveryGeometryOfPartialPlaces) {
  for (Geometry geometry : first_gradients()) {
    if (geometry.r * geometry.s == 1) continue;
    geometry.c = 3, geometry.k = 10;
    expect_right(problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry),
                 "wgrad_small_c");
    geometry.k = 18;
    expect_right(problem_of(filter, DataType::tf32, DataType::f32, TensorFormat::nhwc, geometry),
                 "wgrad_small_c");
    if (geometry.s * 24 > 15 * 8) continue;  // more tiles of columns than the emulator's kernel has
    for (Index const channels : {Index{18}, Index{20}}) {
      geometry.c = channels;
      expect_right(problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry),
                   "wgrad_small_c");
    }
  }
}

// Few filters, but more than fit in 16 bytes: x and dy are exchanged.
TEST(WgradSmallC, FewFiltersOfSeveralUnits) {
  Geometry geometry = first_gradients()[0];
  for (Index const filters : {Index{12}, Index{16}, Index{18}}) {
    geometry.k = filters;
    geometry.c = filters * 4;
    auto const p = problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry);
    EXPECT_TRUE(plan::exchanges_images(p));
    expect_right(p, "wgrad_small_c");
    geometry.c = filters * 4 - 2;
    EXPECT_FALSE(plan::exchanges_images(
        problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry)));
  }
}

// x in any order; dw in any order, so that the filters are rows of the result, or columns.
TEST(WgradSmallC, EveryLayoutOfTheImageAndTheResult) {
  for (TensorFormat const image : {TensorFormat::nchw, TensorFormat::chwn})
    for (TensorFormat const result : {TensorFormat::nchw, TensorFormat::chwn}) {
      auto p = problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, first_gradients()[2]);
      p.x.layout = image_layout(image, p.x.extent(0), p.x.extent(1), p.x.extent(2), p.x.extent(3));
      p.w.layout = image_layout(result, p.w.extent(0), p.w.extent(1), p.w.extent(2), p.w.extent(3));
      expect_right(p, "wgrad_small_c");
    }
}

void expect_bias_gradient(DataType type) {  // in tf32, a separate pass sums unrounded numbers
  auto p = problem_of(filter, type, DataType::f32, TensorFormat::nhwc, first_gradients()[1]);
  p.db = describe(DataType::f32, Shape(p.w.extent(0)));
  PlanOptions options;
  options.kernel = "wgrad_small_c";
  auto const plan = make_plan(p, emulated_device(), options);
  Tensor const x = filled(p.x, 1), dy = filled(p.y, 3);
  Tensor dw(p.w), db(p.db), workspace(DataType::u8, Shape(static_cast<Index>(plan.workspace_bytes)));
  ConvolutionProblem::Arguments arguments;
  arguments.x = x.data(), arguments.dy = dy.data(), arguments.dw = dw.data(), arguments.db = db.data();
  prepare(plan).run(arguments, workspace.data());
  std::vector<double> expected(static_cast<std::size_t>(p.w.extent(0)));
  for (Index i = 0; i < dy.size(); ++i)  // channels last in memory
    expected[static_cast<std::size_t>(i % p.w.extent(0))] += load(type, dy.data(), i);
  for (Index k = 0; k < p.w.extent(0); ++k) EXPECT_EQ(db.get(k), expected[static_cast<std::size_t>(k)]) << k;
}

TEST(WgradSmallC, TheBiasGradientComesWithIt) {
  for (DataType const type : {DataType::f16, DataType::tf32}) expect_bias_gradient(type);
}

// The last tile ends beyond the 67 rows of outputs, where x still has a row, which no window of an output
// reads: an infinity there must not reach the sums.
TEST(WgradSmallC, AnInfinityThatNoOutputReadsReachesNoSum) {
  Geometry geometry;
  geometry.n = 1, geometry.c = 3, geometry.k = 8, geometry.h = 269, geometry.w = 13;
  geometry.stride[0] = geometry.stride[1] = 4;
  auto const p = problem_of(filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry);
  PlanOptions options;
  options.kernel = "wgrad_small_c";
  auto const plan = make_plan(p, emulated_device(), options);
  Tensor x = filled(p.x, 1), dy(p.y), dw(p.w),
         workspace(DataType::u8, Shape(static_cast<Index>(plan.workspace_bytes)));
  for (Index i = 0; i < dy.size(); ++i) store(DataType::f16, dy.data(), i, 1);
  Index const row = 268, column = 0;
  x.set(row * geometry.w + column, std::numeric_limits<double>::infinity());
  ConvolutionProblem::Arguments arguments;
  arguments.x = x.data(), arguments.dy = dy.data(), arguments.dw = dw.data();
  prepare(plan).run(arguments, workspace.data());
  for (Index i = 0; i < dw.size(); ++i) EXPECT_TRUE(std::isfinite(dw.get(i))) << i;
}

TEST(WgradSmallC, RefusalsHoldTheNumbers) {
  auto const refusal = [](Geometry const& geometry, DataType type, TensorFormat format,
                          ConvolutionDirection direction = filter) {
    return plan::wgrad_small_c_plan(problem_of(direction, type, type, format, geometry), emulated_device())
        .refusal;
  };
  auto const expect = [](std::string const& sentence, char const* part) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  };
  Geometry const good = first_gradients().front();
  Geometry many = good, groups = good, dilated = good, odd = good;
  many.c = 9, groups.groups = 2, groups.c = 4, dilated.dilation[1] = 2, odd.k = 11;
  EXPECT_EQ(refusal(good, DataType::f16, TensorFormat::nhwc), "");
  expect(refusal(many, DataType::f16, TensorFormat::nhwc), "9 channels of 2 bytes; at most 16 bytes");
  expect(refusal(groups, DataType::f16, TensorFormat::nhwc), "2 groups");
  expect(refusal(dilated, DataType::f16, TensorFormat::nhwc), "dilated");
  expect(refusal(odd, DataType::f16, TensorFormat::nhwc), "not in units of 4 bytes");
  expect(refusal(good, DataType::f32, TensorFormat::nhwc), "not f32 and f32");
  expect(refusal(good, DataType::f16, TensorFormat::nchw), "(channels last)");
  expect(refusal(good, DataType::f16, TensorFormat::nhwc, forward), "filter gradients only");
}

// The first layers of VGG-16, ResNet-50 and DCGAN's discriminator.
TEST(WgradSmallC, ThePlannerTakesItForFirstLayersAndItCompilesWithoutSpills) {
  std::vector<Geometry> layers = first_layers();
  layers.resize(3);
  layers[0].n = layers[1].n = 64, layers[2].n = 256;
  layers[0].h = layers[0].w = layers[1].h = layers[1].w = 224, layers[2].h = layers[2].w = 64;
  layers[2].c = 3;
  for (Geometry& layer : layers) layer.k = 64;
  Device device = emulated_device();
  device.backend = Backend::cuda;
  for (Geometry const& geometry : layers)
    for (DataType const type : {DataType::bf16, DataType::tf32}) {
      auto const plan =
          make_plan(problem_of(filter, type, DataType::f32, TensorFormat::nhwc, geometry), device);
      EXPECT_EQ(plan.kernel, "wgrad_small_c");
      if (plan.kernel == "wgrad_small_c" && jit::nvrtc_available()) {
        EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0) << geometry.r << 'x' << geometry.s;
      }
    }
}

}  // namespace
}  // namespace cosmati
