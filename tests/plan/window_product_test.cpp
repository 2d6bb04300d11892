// Convolutions through the warp_specialized main loop with images unrolled by TMA: in the emulator, against
// the reference; the tensor maps, rejections and composed kernels.
#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/error.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/program.h"
#include "src/plan/conv/windows/tma_im2col.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

constexpr char const* kernel = "warp_specialized";
constexpr auto forward = ConvolutionDirection::forward, data = ConvolutionDirection::data;

ConvolutionProblem nhwc(ConvolutionDirection direction, Geometry const& geometry,
                        DataType type = DataType::f16) {
  return problem_of(direction, type, type == DataType::s8 ? DataType::s32 : type, TensorFormat::nhwc,
                    geometry);
}

ConvolutionProblem with_epilogue(ConvolutionProblem p) {
  TensorDescription const& result = p.direction == forward ? p.y : p.x;
  p.epilogue.expression =
      epilogue::parse("relu(acc + bias[k] - rest[n, k, p, q])", epilogue::convolution_indices);
  p.epilogue.operands = {describe(DataType::f32, {result.extent(1)}), result};
  return p;
}

// 144 to 396 pixels in tiles of 64; channels in full steps, with a remainder, and fewer than a step.
std::vector<Geometry> windowed_geometries() {
  Geometry plain, strided, dilated, lopsided, narrow;
  plain.c = 64, plain.k = 40, plain.h = 9, plain.w = 8;
  for (Index* pad : {plain.pad_begin, plain.pad_end}) pad[0] = pad[1] = 1;
  strided = plain, strided.n = 3, strided.c = 72, strided.h = 13, strided.w = 15, strided.stride[0] = 2;
  strided.stride[1] = 3;
  dilated = plain, dilated.c = 16, dilated.k = 8, dilated.h = 14, dilated.dilation[0] = 3;
  dilated.dilation[1] = 2, dilated.r = 2;
  lopsided = plain, lopsided.c = lopsided.k = 24, lopsided.r = 5, lopsided.s = 2, lopsided.pad_begin[0] = 3;
  lopsided.pad_end[0] = 0, lopsided.pad_begin[1] = 0, lopsided.pad_end[1] = 4;
  narrow = plain, narrow.c = 8, narrow.h = 1, narrow.r = 1, narrow.pad_begin[0] = narrow.pad_end[0] = 0;
  narrow.w = 150;
  return {plain, strided, dilated, lopsided, narrow};
}

TEST(WindowProduct, EveryGeometryForward) {
  for (Geometry const& geometry : windowed_geometries()) expect_right(nhwc(forward, geometry), kernel);
}

// Up to 32 channels of 16 bits fill at most half of a full step.
TEST(WindowProduct, FewChannelsHaveShallowSteps) {
  PlanOptions options, full;
  options.kernel = full.kernel = kernel;
  full.policy = "block_k=64";
  for (Index const channels : {8, 24, 32, 40}) {
    Geometry g = windowed_geometries().front();
    g.c = channels, g.k = channels;
    for (ConvolutionDirection const direction : {forward, data}) {
      auto const p = nhwc(direction, g);
      int const depth = make_plan(p, emulated_device(), options).recipe.product.policy.block_k;
      EXPECT_EQ(depth, channels <= 32 ? 32 : 64);
      expect_right(p, kernel);
      EXPECT_EQ(make_plan(p, emulated_device(), full).recipe.product.policy.block_k, 64);
      expect_right(p, kernel, "block_k=64");
    }
  }
  Geometry few = windowed_geometries().front();
  few.c = 16;
  EXPECT_EQ(plan::bytes_of_step(nhwc(forward, few), {}, false), 32);
  EXPECT_EQ(plan::bytes_of_step(nhwc(forward, few, DataType::s8), {}, false), 128);
  EXPECT_EQ(plan::bytes_of_step(nhwc(ConvolutionDirection::filter, few), {}, false), 128);
}

TEST(WindowProduct, DataGradientsReadTheirTapsBackward) {
  for (Geometry geometry : windowed_geometries()) {
    geometry.stride[0] = geometry.stride[1] = 1;
    expect_right(nhwc(data, geometry), kernel);
  }
}

// Strides that leave phases without a tap, and taps with dilation.
TEST(WindowProduct, PhasesOfStridedDataGradientsShareALaunch) {
  PlanOptions options;
  options.kernel = kernel;
  Geometry strided = windowed_geometries()[1], sparse = strided;
  strided.c = 24, strided.n = 2;
  sparse.r = 1, sparse.s = 2, sparse.dilation[1] = 2, sparse.stride[1] = 2, sparse.c = 16;
  for (Geometry const& geometry : {strided, sparse}) {
    EXPECT_EQ(make_plan(nhwc(data, geometry), emulated_device(), options).recipe.launches, 1);
    expect_right(nhwc(data, geometry), kernel);
    expect_right(with_epilogue(nhwc(data, geometry)), kernel);
  }
}

// A filter as DCGAN stores it, (r, s, c, k), is read in place for every type.
TEST(WindowProduct, FiltersAlongTheChannelsOfTheOutputGradient) {
  PlanOptions options;
  options.kernel = kernel;
  Geometry strided = windowed_geometries().front();
  strided.k = 48, strided.c = 24, strided.h = 11, strided.stride[0] = strided.stride[1] = 2;
  strided.r = strided.s = 5;
  for (DataType const type : {DataType::f16, DataType::tf32, DataType::s8}) {
    auto p = nhwc(data, strided, type);
    p.w.layout = row_major({5, 5, strided.c, strided.k}).permuted(3, 2, 0, 1);
    auto const plan = make_plan(p, emulated_device(), options);
    EXPECT_FALSE(std::get<PackRecipe>(plan.recipe.own).other);
    expect_right(with_epilogue(p), kernel);
  }
}

// The same filter forward is contiguous along the filters, which wgmma reads for 2-byte types.
TEST(WindowProduct, FiltersAlongTheFiltersForward) {
  PlanOptions options;
  options.kernel = kernel;
  for (Geometry const& geometry : windowed_geometries())
    for (DataType const type : {DataType::f16, DataType::tf32}) {
      auto p = nhwc(forward, geometry, type);
      p.w.layout = row_major({geometry.r, geometry.s, geometry.c, geometry.k}).permuted(3, 2, 0, 1);
      auto const plan = make_plan(p, emulated_device(), options);
      EXPECT_EQ(std::get<PackRecipe>(plan.recipe.own).other, type == DataType::tf32);
      expect_right(with_epilogue(p), kernel);
    }
}

TEST(WindowProduct, TensorFloats) {
  for (Geometry geometry : windowed_geometries()) {
    expect_right(nhwc(forward, geometry, DataType::tf32), kernel);
    expect_right(nhwc(data, geometry, DataType::tf32), kernel);
  }
}

TEST(WindowProduct, Bytes) {
  Geometry geometry = windowed_geometries().front();
  geometry.c = 144;
  expect_right(nhwc(forward, geometry, DataType::s8), kernel);
}

TEST(WindowProduct, DeepSumsAreSplit) {
  Geometry geometry = windowed_geometries().front();
  geometry.n = 1, geometry.c = 256, geometry.h = geometry.w = 4;
  auto const p = nhwc(forward, geometry);
  PlanOptions options;
  options.kernel = kernel;
  options.policy = "partition=split_k";
  EXPECT_GT(make_plan(p, emulated_device(), options).recipe.product.splits, 1);
  expect_right(p, kernel, options.policy.text);
  // Each phase has its own flags and sums.
  geometry.k = 264, geometry.c = 72, geometry.h = 9, geometry.w = 11,
  geometry.stride[0] = geometry.stride[1] = 2;
  auto const phases = make_plan(nhwc(data, geometry), emulated_device(), options);
  EXPECT_GT(phases.recipe.product.splits, 1);
  EXPECT_EQ(phases.recipe.launches, 1);
  expect_right(with_epilogue(nhwc(data, geometry)), kernel, options.policy.text);
}

// K runs over pixels: 144 of them are two steps and a quarter, and boxes have 32 channels of a tap.
TEST(WindowProduct, FiltersGradientsSumOverPixels) {
  for (Geometry geometry : windowed_geometries())
    for (TensorFormat const format : {TensorFormat::nhwc, TensorFormat::nchw}) {
      geometry.c = 64;
      auto const p = problem_of(ConvolutionDirection::filter, DataType::f16, DataType::f32, format, geometry);
      for (char const* const policy : {"", "partition=split_k"}) expect_right(p, kernel, policy);
    }
}

// Channels that do not fill the boxes are not packed: TMA fills the rest with zeros, and only dw is packed.
TEST(WindowProduct, FilterGradientsPadChannelsByTma) {
  for (DataType const type : {DataType::f16, DataType::tf32})
    for (Geometry geometry : windowed_geometries()) {
      geometry.c = 72;
      auto const p =
          problem_of(ConvolutionDirection::filter, type, DataType::f32, TensorFormat::nhwc, geometry);
      PlanOptions options;
      options.kernel = kernel;
      auto const plan = make_plan(p, emulated_device(), options);
      std::string const& recipe = plan.chosen().recipe;
      EXPECT_NE(recipe.find("channels of x padded by TMA, dw unpacked at the end"), std::string::npos)
          << recipe;
      EXPECT_EQ(recipe.find("x packed"), std::string::npos) << recipe;
      for (char const* const policy : {"", "partition=split_k"}) expect_right(p, kernel, policy);
    }
  // TMA cannot read dy.
  Geometry geometry = windowed_geometries()[1];
  auto p =
      problem_of(ConvolutionDirection::filter, DataType::f16, DataType::f32, TensorFormat::nhwc, geometry);
  p.y.alignment = 2;
  PlanOptions options;
  options.kernel = kernel;
  std::string const recipe = make_plan(p, emulated_device(), options).chosen().recipe;
  EXPECT_NE(recipe.find("dy packed first, channels last, channels of x padded by TMA"), std::string::npos)
      << recipe;
  expect_right(p, kernel);
}

// wgmma reads tf32 in place only along k, so dy is transposed, and x passes through registers.
TEST(WindowProduct, FilterGradientsInTf32TransposeDy) {
  for (Geometry geometry : windowed_geometries())
    for (Index const channels : {Index{32}, Index{40}, Index{3}}) {
      geometry.c = channels;
      auto const p = problem_of(ConvolutionDirection::filter, DataType::tf32, DataType::f32,
                                TensorFormat::nhwc, geometry);
      for (char const* const policy : {"", "partition=split_k"}) expect_right(p, kernel, policy);
    }
}

TEST(WindowProduct, EpiloguesSeeTheResultsIndices) {
  for (ConvolutionDirection const direction : {forward, data})
    expect_right(with_epilogue(nhwc(direction, windowed_geometries().front())), kernel);
}

TEST(WindowProduct, CornersAreThoseOfTheFirstAndTheLastWindow) {
  Geometry geometry = windowed_geometries()[1];  // rows -1, 1, ..., 11 of 13, columns -1, 2, ..., 11 of 15
  auto const all = plan::window_products(nhwc(forward, geometry), described_h200().gpu);
  ASSERT_EQ(all.refusal, "");
  plan::WindowProduct const& made = all.parts.front();
  EXPECT_EQ(made.image.lower[0], -1);
  EXPECT_EQ(made.image.lower[1], -1);
  EXPECT_EQ(made.image.upper[0], 11 - 14);
  EXPECT_EQ(made.image.upper[1], 11 - 12);
  EXPECT_EQ(made.product.k, 3 * 3 * 128);  // 72 channels in two steps
}

TEST(WindowProduct, RefusalsHoldTheNumbers) {
  auto const expect = [](ConvolutionProblem const& p, std::string const& part) {
    EXPECT_NE(refusal_of(p, kernel).find(part), std::string::npos) << refusal_of(p, kernel);
  };
  Geometry const plain = windowed_geometries().front();
  Geometry odd = plain, far = plain, wide = plain, steps = plain, groups = plain;
  odd.c = 12, far.pad_begin[0] = 130, groups.groups = 2;
  wide.dilation[1] = 130, wide.w = 300, wide.h = 3;
  wide.pad_begin[1] = wide.pad_end[1] = 100;
  steps.stride[1] = 9, steps.w = 30;
  EXPECT_EQ(refusal_of(nhwc(forward, plain), kernel), "");
  EXPECT_EQ(plan::window_products(nhwc(forward, odd), described_h200().gpu).refusal,
            "x: a stride of 12 elements of f16; TMA requires positive multiples of 8 elements (16 bytes)");
  EXPECT_EQ(refusal_of(nhwc(forward, odd), kernel), "");  // packed first
  expect(nhwc(forward, far), "the first window begins at -130 of the rows");
  expect(nhwc(forward, wide), "TMA supports -128 to 127");
  expect(nhwc(forward, steps), "windows are 9 columns apart; TMA supports at most 8");
  expect(nhwc(forward, groups), "2 groups");
  EXPECT_EQ(plan::window_products(nhwc(ConvolutionDirection::filter, odd), described_h200().gpu).refusal,
            "12 channels; a TMA box of a filter gradient holds one tap and requires a multiple of 64");
  EXPECT_EQ(refusal_of(nhwc(ConvolutionDirection::filter, odd), kernel), "");
  ConvolutionProblem const tf32 = nhwc(ConvolutionDirection::filter, plain, DataType::tf32);
  EXPECT_NE(plan::window_products(tf32, described_h200().gpu).refusal.find("pixels are not contiguous"),
            std::string::npos);
  EXPECT_EQ(refusal_of(tf32, kernel), "");  // dy is transposed first
  expect(problem_of(ConvolutionDirection::filter, DataType::tf32, DataType::f32, TensorFormat::nchw, plain),
         "pixels are not contiguous");
  expect(nhwc(ConvolutionDirection::filter, plain, DataType::s8), "pixels are not contiguous");
  for (DataType const type : {DataType::s8, DataType::tf32}) {
    EXPECT_EQ(plan::window_products(nhwc(data, plain, type), described_h200().gpu).refusal,
              std::string("multiply wgmma requires ") + name_of(type) +
                  " contiguous along k; in the filter, c is contiguous, not k");
    EXPECT_EQ(refusal_of(nhwc(data, plain, type), kernel), "");  // the filter is packed first
  }
  auto const pixels_last = problem_of(forward, DataType::f16, DataType::f16, TensorFormat::nchw, plain);
  EXPECT_NE(plan::window_products(pixels_last, described_h200().gpu).refusal.find("(channels last)"),
            std::string::npos);
  expect(problem_of(forward, DataType::f16, DataType::f16, TensorFormat::chwn, plain),
         "strides of the images do not follow");
  expect(nhwc(forward, plain, DataType::f32), "multiply wgmma does not support f32 and f32");
  Device old = described_h200();
  old.gpu = describe_gpu("a100");
  EXPECT_NE(plan::window_products(nhwc(forward, plain), old.gpu).refusal.find("8.0"), std::string::npos);
}

TEST(WindowProduct, PoliciesOfOneMainLoopAreNotForAnother) {
  Geometry geometry = windowed_geometries().front();
  geometry.n = 64, geometry.c = geometry.k = 128, geometry.h = geometry.w = 56;
  PlanOptions options;
  EXPECT_EQ(make_plan(nhwc(forward, geometry), described_h200(), options).kernel, kernel);
  options.policy = "main_loop=multistage,multiply=mma";
  EXPECT_EQ(make_plan(nhwc(forward, geometry), described_h200(), options).kernel, "implicit_gemm");
  options.policy = "main_loop=warp_specialized,vast";
  auto const plan = make_plan(nhwc(forward, geometry), described_h200(), options);
  EXPECT_EQ(plan.kernel, kernel);
  EXPECT_EQ(plan.recipe.product.policy_name, "vast");
  geometry.stride[0] = 2;
  options.policy = "partition=stream_k";
  options.kernel = kernel;
  EXPECT_THROW(make_plan(nhwc(data, geometry), described_h200(), options), Error);
}

// Blocks of stream-K read different pixels at the same time, so the L2 cache would not serve several tiles.
TEST(WindowProduct, LongFilterGradientsAreSplitEvenly) {
  Geometry geometry = windowed_geometries().front();
  geometry.n = 64, geometry.c = 128, geometry.k = 256, geometry.h = geometry.w = 56;
  for (DataType const type : {DataType::f16, DataType::tf32}) {
    PlanOptions options;
    options.kernel = kernel;
    ConvolutionProblem const p = nhwc(ConvolutionDirection::filter, geometry, type);
    EXPECT_NE(make_plan(p, described_h200(), options).recipe.product.policy.partition, Partition::stream_k);
    options.policy = "partition=stream_k";
    EXPECT_EQ(make_plan(p, described_h200(), options).recipe.product.policy.partition, Partition::stream_k);
  }
}

// The pixels of a phase are two apart. TMA stores them if each is a multiple of 16 bytes, and if operands of
// the epilogue have a single stride per index; otherwise threads store them by digits.
TEST(WindowProduct, TmaStoresThePixelsOfPhases) {
  auto const destination = [](Index channels, bool with_operand_of_results) {
    Geometry g = windowed_geometries().front();
    g.c = channels, g.k = 64, g.stride[0] = g.stride[1] = 2;
    ConvolutionProblem p = nhwc(data, g);
    p.epilogue.expression = epilogue::parse("relu(acc + bias[k])", epilogue::convolution_indices);
    p.epilogue.operands = {describe(DataType::f32, {channels})};
    if (with_operand_of_results) p = with_epilogue(p);
    PlanOptions options;
    options.kernel = kernel;
    options.policy = "medium";
    auto const plan = make_plan(p, described_h200(), options);
    std::string const traits = plan::program_of(plan).kernels.front().traits;
    bool const by_tma = traits.find("TensorDestination<f16, Along::k, ResultArguments>") != std::string::npos;
    EXPECT_NE(by_tma, traits.find("ConvDestination") != std::string::npos) << traits;
    EXPECT_EQ(plan.recipe.product.policy.epilogue == EpilogueSchedule::direct, by_tma);
    return by_tma;
  };
  EXPECT_TRUE(destination(64, false));
  EXPECT_TRUE(destination(72, false));
  EXPECT_FALSE(destination(68, false));
  EXPECT_FALSE(destination(64, true));
}

// The channels of each tap of a filter gradient are padded. TMA stores dw tap by tap if its taps and filters
// are multiples of 16 bytes apart; otherwise it is unpacked.
TEST(WindowProduct, TmaStoresFilterGradientsByTaps) {
  auto const stores = [](Index channels, TensorFormat format, DataType result, char const* policy) {
    Geometry g = windowed_geometries().front();
    g.c = channels;
    PlanOptions options;
    options.kernel = kernel;
    options.policy = policy;
    auto const p = problem_of(ConvolutionDirection::filter, DataType::f16, result, format, g);
    auto const plan = make_plan(p, described_h200(), options);
    std::vector<program::KernelSpec> const kernels = plan::program_of(plan).kernels;
    bool const by_taps = std::get<PackRecipe>(plan.recipe.own).by_taps;
    EXPECT_NE(by_taps, kernels.back().entry == "unpack_kernel");
    EXPECT_EQ(by_taps, kernels.front().traits.find("Along::k, TapArguments>") != std::string::npos);
    std::string const text = by_taps ? "dw stored by taps" : "dw unpacked at the end";
    EXPECT_NE(plan.chosen().recipe.find(text), std::string::npos) << plan.chosen().recipe;
    return by_taps;
  };
  for (char const* const policy : {"medium", "deep_pair", "medium,partition=split_k"})
    EXPECT_TRUE(stores(72, TensorFormat::nhwc, DataType::f16, policy)) << policy;
  EXPECT_TRUE(stores(72, TensorFormat::nhwc, DataType::f32, "medium"));
  EXPECT_FALSE(stores(72, TensorFormat::nhwc, DataType::f16, "medium,epilogue=staged"));
  EXPECT_FALSE(stores(72, TensorFormat::nchw, DataType::f16, "medium"));
  EXPECT_FALSE(stores(76, TensorFormat::nhwc, DataType::f16, "medium"));
}

// 29 channels of 16 bits are not a multiple of 16 bytes; the result is a matrix, which threads store by its
// stride.
TEST(WindowProduct, AResultThatTmaCannotStoreKeepsItsStride) {
  for (Index const filters : {29, 32}) {
    Geometry g = windowed_geometries().front();
    g.k = filters;
    plan::WindowProducts const windows = plan::window_products(nhwc(forward, g), described_h200().gpu);
    EXPECT_EQ(windows.refusal, "");
    EXPECT_FALSE(windows.by_digits || windows.by_pixels);
    EXPECT_EQ(windows.parts.front().product.d.row_stride, filters);
  }
}

TEST(WindowProduct, ComposedKernelsCompileWithoutSpills) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  struct Case {
    ConvolutionDirection direction;
    DataType type;
    char const* policy;
  };
  constexpr auto filter = ConvolutionDirection::filter;
  for (Case const& each : {Case{forward, DataType::f16, "large"},
                           {data, DataType::f16, "small"},
                           {filter, DataType::f16, "medium"},
                           {filter, DataType::tf32, "huge"}}) {
    Geometry geometry = windowed_geometries().front();
    geometry.c = geometry.k = 256;
    if (each.direction == data) geometry.stride[0] = 2;
    PlanOptions options;
    options.kernel = kernel;
    options.policy = each.policy;
    ConvolutionProblem const p = nhwc(each.direction, geometry, each.type);
    auto const plan = make_plan(each.direction == filter ? p : with_epilogue(p), described_h200(), options);
    EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0);
  }
}

}  // namespace
}  // namespace cosmati
