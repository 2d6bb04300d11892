// Convolutions for GPUs, in the emulator, against the reference: directions, layouts, types, and every
// multiply.
#include "cosmati/ops/convolution.h"

#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/choice.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

TEST(EmulatedConvolution, EveryDirectionLayoutAndGeometry) {
  for (ConvolutionDirection const direction : directions)
    for (TensorFormat const format : formats)
      for (Geometry const& geometry : geometries()) {
        auto const p = problem_of(direction, DataType::f32, DataType::f32, format, geometry);
        expect_right(p, "direct");
        expect_right(p, "implicit_gemm", "main_loop=double_buffered");
        if (geometry.c == 32) expect_right(p, "implicit_gemm", "main_loop=multistage,multiply=fma");
      }
}

TEST(EmulatedConvolution, EveryType) {
  struct Types {
    DataType operands, result;
    char const* policy;
  };
  for (Types const& types : {Types{DataType::f64, DataType::f64, ""},
                             {DataType::f16, DataType::f16, "multiply=mma"},
                             {DataType::tf32, DataType::f32, "multiply=mma"},
                             {DataType::bf16, DataType::f32, "multiply=fma"},
                             {DataType::s8, DataType::s32, ""},
                             {DataType::u8, DataType::s32, ""}})
    for (ConvolutionDirection const direction : directions)
      for (Geometry const& geometry : geometries()) {
        auto const p = problem_of(direction, types.operands, types.result, TensorFormat::nhwc, geometry);
        if (is_integer(types.operands) && types.policy[0] != '\0') continue;
        expect_right(p, "direct");
        if (types.operands != DataType::u8) expect_right(p, "implicit_gemm", types.policy);
      }
}

TEST(EmulatedConvolution, EpiloguesSeeTheResultsIndices) {
  for (ConvolutionDirection const direction : {ConvolutionDirection::forward, ConvolutionDirection::data})
    for (TensorFormat const format : formats)
      for (char const* kernel : {"direct", "implicit_gemm"}) {
        auto p = problem_of(direction, DataType::f32, DataType::f32, format, geometries().front());
        TensorDescription const& result = direction == ConvolutionDirection::forward ? p.y : p.x;
        p.epilogue.expression = epilogue::parse("relu(2 * acc + bias[k] - row[p, n]) + rest[n, k, p, q]",
                                                epilogue::convolution_indices);
        p.epilogue.operands = {describe(DataType::f32, {result.extent(1)}),
                               describe(DataType::f32, {result.extent(2), result.extent(0)}),
                               describe(DataType::f32, result.shape())};
        expect_right(p, kernel);
      }
}

TEST(EmulatedConvolution, DeepGradientsAreSplit) {
  Geometry deep;
  deep.n = 8, deep.h = 20, deep.w = 20;
  auto const p =
      problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, TensorFormat::nhwc, deep);
  PlanOptions options;
  options.kernel = "implicit_gemm";
  EXPECT_GT(make_plan(p, emulated_device(), options).recipe.product.splits, 1);
  expect_right(p);
}

Geometry generator_layer(Index stride) {
  Geometry layer;
  layer.n = 1, layer.c = 8, layer.k = 72, layer.h = 9, layer.w = 8, layer.r = layer.s = 5;
  layer.stride[0] = layer.stride[1] = stride;
  layer.pad_begin[0] = layer.pad_begin[1] = 1, layer.pad_end[0] = layer.pad_end[1] = 2;
  return layer;
}

TEST(EmulatedConvolution, PhasesShareALaunch) {
  PlanOptions options;
  options.kernel = "implicit_gemm";
  for (TensorFormat const format : formats) {
    auto p = problem_of(ConvolutionDirection::data, DataType::f32, DataType::f32, format, generator_layer(2));
    p.epilogue.expression = epilogue::parse("relu(acc - bias[k]) + row[p]", epilogue::convolution_indices);
    p.epilogue.operands = {describe(DataType::f32, {8}), describe(DataType::f32, {9})};
    auto const plan = make_plan(p, emulated_device(), options);
    EXPECT_EQ(plan.recipe.launches, 1);
    EXPECT_GT(plan.recipe.product.splits, 1);  // each phase has its own flags and sums
    expect_right(p);
    // More phases than a launch supports.
    p = problem_of(ConvolutionDirection::data, DataType::f32, DataType::f32, format, generator_layer(5));
    EXPECT_EQ(make_plan(p, emulated_device(), options).recipe.launches, 25);
    expect_right(p);
  }
}

TEST(EmulatedConvolution, FiltersOfGradientsAreCopied) {
  for (DataType const type : {DataType::f32, DataType::f16, DataType::s8})
    for (Index const groups : {1, 2}) {
      Geometry layer = generator_layer(2);
      layer.k = 12, layer.groups = groups;
      DataType const result = type == DataType::s8 ? DataType::s32 : type;
      auto const p = problem_of(ConvolutionDirection::data, type, result, TensorFormat::nchw, layer);
      expect_right(p, "implicit_gemm", "operands=repacked");
    }
  // Full steps of channels: filters are read in 16-byte runs, and lanes lie along pixels, which are n because
  // those of a phase are closer together than channels.
  Geometry layer = generator_layer(2);
  layer.k = 16;
  for (char const* main_loop : {"double_buffered", "multistage"}) {
    auto const p =
        problem_of(ConvolutionDirection::data, DataType::f32, DataType::f32, TensorFormat::nchw, layer);
    expect_right(p, "implicit_gemm", std::string("operands=repacked,main_loop=") + main_loop);
    PlanOptions options;
    options.kernel = "implicit_gemm", options.policy = "operands=repacked";
    auto const product = make_plan(p, emulated_device(), options).recipe.product;
    EXPECT_TRUE(product.swapped);
    EXPECT_EQ(product.a, (OperandAccess{Along::mn, 4}));
    EXPECT_EQ(product.b, (OperandAccess{Along::mn, 1}));
  }
  PlanOptions options;
  options.kernel = "implicit_gemm", options.policy = "operands=repacked";
  auto const together = problem_of(ConvolutionDirection::data, DataType::f32, DataType::f32,
                                   TensorFormat::nhwc, generator_layer(2));
  EXPECT_THROW(make_plan(together, emulated_device(), options), Error);
}

TEST(EmulatedConvolution, FiltersOfForwardConvolutionsAreCopied) {
  Geometry layer;
  layer.k = 12, layer.stride[0] = 2;
  for (DataType const type : {DataType::f32, DataType::f16, DataType::s8})
    for (Index const groups : {1, 2}) {
      layer.groups = groups;
      DataType const result = type == DataType::s8 ? DataType::s32 : type;
      auto const p = problem_of(ConvolutionDirection::forward, type, result, TensorFormat::nchw, layer);
      expect_right(p, "implicit_gemm", "operands=repacked");
    }
  Device const gpu = [] {
    Device device = emulated_device();
    device.backend = Backend::cuda;
    return device;
  }();
  // Taps lie between the channels in NCHW. In NHWC and with a single tap, channels are contiguous.
  PlanOptions options;
  options.kernel = "implicit_gemm";
  layer.groups = 1, layer.c = 64, layer.k = 128, layer.h = layer.w = 40;
  auto const product_of = [&](TensorFormat format) {
    return make_plan(problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, format, layer),
                     gpu, options)
        .recipe.product;
  };
  GemmRecipe const copied = product_of(TensorFormat::nchw);
  EXPECT_GT(copied.repack_a.bytes, 0u);
  EXPECT_EQ(copied.a, (OperandAccess{Along::mn, 4}));
  EXPECT_EQ(copied.b, (OperandAccess{Along::mn, 1}));
  EXPECT_EQ(product_of(TensorFormat::nhwc).repack_a.bytes + product_of(TensorFormat::nhwc).repack_b.bytes,
            0u);
  layer.r = layer.s = 1;
  EXPECT_EQ(product_of(TensorFormat::nchw).repack_a.bytes, 0u);
}

// Windows that stay inside the image are read in runs; the rows of an image are one run.
TEST(ConvolutionForms, WindowsInsideTheImageAreReadInRuns) {
  Device gpu = emulated_device();
  gpu.backend = Backend::cuda;
  PlanOptions options;
  options.kernel = "implicit_gemm";
  auto const product_of = [&](ConvolutionDirection direction, Geometry const& geometry) {
    return make_plan(problem_of(direction, DataType::f32, DataType::f32, TensorFormat::nchw, geometry), gpu,
                     options)
        .recipe.product;
  };
  Geometry layer;
  layer.n = 4, layer.c = 32, layer.k = 64, layer.r = layer.s = 1, layer.h = layer.w = 14;
  GemmRecipe product = product_of(ConvolutionDirection::filter, layer);
  EXPECT_EQ(product.a, (OperandAccess{Along::k, 4}));  // 196 pixels of dy, rows of 14
  EXPECT_EQ(product.b, (OperandAccess{Along::k, 4}));
  layer.h = layer.w = 12;
  EXPECT_EQ(product_of(ConvolutionDirection::forward, layer).b, (OperandAccess{Along::mn, 4}));
  EXPECT_EQ(product_of(ConvolutionDirection::data, layer).b, (OperandAccess{Along::mn, 4}));
  // A padded image, or more than one tap.
  layer.pad_begin[1] = 1;
  EXPECT_EQ(product_of(ConvolutionDirection::forward, layer).b, (OperandAccess{Along::mn, 1}));
  EXPECT_EQ(product_of(ConvolutionDirection::filter, layer).b.width, 1);
  layer.pad_begin[1] = 0, layer.s = 3;
  EXPECT_EQ(product_of(ConvolutionDirection::forward, layer).b, (OperandAccess{Along::mn, 1}));
  auto const windowed = [](ConvolutionDirection direction, Geometry const& geometry) {
    return plan::forms_of(problem_of(direction, DataType::f32, DataType::f32, TensorFormat::nchw, geometry))
        .front()
        .image()
        .windowed;
  };
  EXPECT_FALSE(windowed(ConvolutionDirection::forward, layer));
  EXPECT_FALSE(windowed(ConvolutionDirection::filter, layer));
  EXPECT_TRUE(windowed(ConvolutionDirection::data, layer));  // pixels at the edge have fewer taps
}

TEST(ConvolutionForms, AStridedDataGradientMultipliesNoZero) {
  Geometry geometry;
  geometry.r = geometry.s = 5, geometry.h = geometry.w = 16, geometry.stride[0] = geometry.stride[1] = 2;
  geometry.pad_begin[0] = geometry.pad_begin[1] = geometry.pad_end[0] = geometry.pad_end[1] = 2;
  auto const forms = plan::forms_of(
      problem_of(ConvolutionDirection::data, DataType::f32, DataType::f32, TensorFormat::nhwc, geometry));
  ASSERT_EQ(forms.size(), 4u);
  Index products = 0;
  for (auto const& form : forms) products += form.rows() * form.columns() * form.depth();
  EXPECT_EQ(products, geometry.n * 8 * 8 * geometry.c * 25 * geometry.k);  // 9 + 6 + 6 + 4 taps
}

TEST(EmulatedConvolution, BiasGradientsComeWithTheFiltersOrAlone) {
  for (ConvolutionDirection const direction : {ConvolutionDirection::filter, ConvolutionDirection::bias}) {
    auto p = problem_of(direction, DataType::f32, DataType::f32, TensorFormat::nhwc, geometries().front());
    p.db = describe(DataType::f32, {6});
    Tensor const x = filled(p.x, 1), dy = filled(p.y, 3);
    for (Device const& device : {emulated_device(), this_device(Backend::reference)}) {
      auto const prepared = prepare(make_plan(p, device));
      Tensor dw = filled(p.w, 9), db = filled(p.db, 9);
      Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
      prepared.run({.x = x.data(), .dy = dy.data(), .dw = dw.data(), .db = db.data()}, workspace.data());
      for (Index k = 0; k < 6; ++k) {
        double sum = 0;
        for (Index n = 0; n < p.y.extent(0); ++n)
          for (Index q = 0; q < p.y.extent(2); ++q)
            for (Index r = 0; r < p.y.extent(3); ++r)
              sum += load(DataType::f32, dy.data(), p.y.layout.offset(n, k, q, r));
        EXPECT_EQ(db.get(k), sum) << name_of(device.backend) << ' ' << k;
      }
    }
  }
}

TEST(ComposedConvolution, Compiles) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  Device device = emulated_device();
  device.backend = Backend::cuda;
  for (ConvolutionDirection const direction : directions)
    for (char const* kernel : {"direct", "implicit_gemm"}) {
      auto p = problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nhwc, geometries()[2]);
      if (direction != ConvolutionDirection::filter) {
        p.epilogue.expression = epilogue::parse("relu(acc + bias[k])", epilogue::convolution_indices);
        p.epilogue.operands = {describe(
            DataType::f32, {direction == ConvolutionDirection::forward ? p.y.extent(1) : p.x.extent(1)})};
      }
      PlanOptions options;
      options.kernel = kernel;
      jit::Cubin const cubin = jit::compile(main_source(make_plan(p, device, options)));
      EXPECT_EQ(cubin.local_bytes, 0) << kernel;
    }
}

// No images, channels or filters: empty sums or empty results, by every kernel that supports them.
TEST(EmulatedConvolution, EmptyExtents) {
  int computed = 0;
  for (ConvolutionDirection const direction : directions)
    for (DataType const type : {DataType::f32, DataType::f16})
      for (TensorFormat const format : formats)
        for (int empty = 1; empty < 8; ++empty)
          for (Index const taps : {1, 3})
            for (Index const groups : {1, 4}) {
              Geometry g;
              g.n = empty & 1 ? 0 : 2, g.c = empty & 2 ? 0 : 4, g.k = empty & 4 ? 0 : 4;
              g.r = g.s = taps, g.groups = groups;
              auto const problem = problem_of(direction, type, type, format, g);
              for (Considered const& entry : make_plan(problem, emulated_device()).considered)
                if (entry.refusal.empty()) {
                  SCOPED_TRACE(to_string(problem.x) + " " + to_string(problem.w));
                  expect_right(problem, entry.kernel);
                  ++computed;
                }
            }
  EXPECT_GT(computed, 504);
}

}  // namespace
}  // namespace cosmati
