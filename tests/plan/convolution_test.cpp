// Convolutions of GPUs as the emulator runs them, against the reference: directions, layouts, types, and
// every way to multiply.
#include "cosmati/ops/convolution.h"

#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "src/backend/cuda/convolution.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/choice.h"
#include "tests/support/random.h"

namespace cosmati {
namespace {

Device emulator() {
  Device device = this_device(Backend::emulator);
  device.gpu = describe_gpu("h200");
  return device;
}

struct Geometry {
  Index n = 2, c = 4, k = 6, h = 9, w = 7, r = 3, s = 3;
  Index stride[2] = {1, 1}, pad_begin[2] = {0, 0}, pad_end[2] = {0, 0}, dilation[2] = {1, 1};
  Index groups = 1;
};

ConvolutionProblem problem_of(ConvolutionDirection direction, DataType type, DataType result,
                              TensorFormat format, Geometry const& g) {
  ConvolutionProblem p;
  p.direction = direction;
  p.groups = g.groups;
  Index const in[2] = {g.h, g.w}, filter[2] = {g.r, g.s};
  Index out[2];
  for (int i = 0; i < 2; ++i) {
    p.stride[i] = g.stride[i];
    p.pad_begin[i] = g.pad_begin[i];
    p.pad_end[i] = g.pad_end[i];
    p.dilation[i] = g.dilation[i];
    out[i] = convolution_extent(in[i], filter[i], g.stride[i], g.pad_begin[i], g.pad_end[i], g.dilation[i]);
  }
  auto const of = [&](bool is_result) { return is_result ? result : type; };
  p.x = describe(of(direction == ConvolutionDirection::data), image_layout(format, g.n, g.c, g.h, g.w));
  p.w = describe(of(direction == ConvolutionDirection::filter),
                 image_layout(format, g.k, g.c / g.groups, g.r, g.s));
  p.y = describe(of(direction == ConvolutionDirection::forward),
                 image_layout(format, g.n, g.k, out[0], out[1]));
  return p;
}

// Small integers: every sum is exact in every type.
Tensor filled(TensorDescription const& description, Index seed) {
  Tensor tensor(description);
  for (Index i = 0; i < tensor.layout().span(); ++i)
    store(description.type, tensor.data(), i, static_cast<double>((i * 7 + seed) % 5 % 3));
  return tensor;
}

struct Run {
  Tensor result;
  std::string recipe;
};
Run run(ConvolutionProblem const& p, Device const& device, std::string const& kernel,
        std::string const& policy) {
  PlanOptions options;
  options.kernel = kernel;
  options.policy = policy;
  auto const plan = make_plan(p, device, options);
  auto const prepared = prepare(plan);
  Tensor const x = filled(p.x, 1), w = filled(p.w, 2), y = filled(p.y, 3);
  bool const forward = p.direction == ConvolutionDirection::forward,
             data = p.direction == ConvolutionDirection::data;
  Run made{filled(forward ? p.y : data ? p.x : p.w, 9), {}};
  for (Considered const& entry : plan.considered)
    if (entry.kernel == plan.kernel) made.recipe = entry.recipe;
  ConvolutionProblem::Arguments arguments;
  arguments.x = x.data(), arguments.w = w.data(), arguments.dy = y.data();
  (forward ? arguments.y : data ? arguments.dx : arguments.dw) = made.result.data();
  std::vector<Tensor> operands;
  std::vector<void const*> pointers;
  for (TensorDescription const& operand : p.epilogue.operands) operands.push_back(filled(operand, 4));
  for (Tensor const& operand : operands) pointers.push_back(operand.data());
  arguments.operands = pointers;
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
  prepared.run(arguments, workspace.data());
  return made;
}

void expect_right(ConvolutionProblem const& p, std::string const& kernel = "implicit_gemm",
                  std::string const& policy = "") {
  Run const ours = run(p, emulator(), kernel, policy);
  Run const expected = run(p, this_device(Backend::reference), "", "");
  for (Index i = 0; i < ours.result.layout().span(); ++i)
    ASSERT_EQ(load(ours.result.type(), ours.result.data(), i),
              load(ours.result.type(), expected.result.data(), i))
        << kernel << ' ' << ours.recipe << ", direction " << static_cast<int>(p.direction) << ", element "
        << i;
}

constexpr ConvolutionDirection directions[] = {ConvolutionDirection::forward, ConvolutionDirection::data,
                                               ConvolutionDirection::filter};
constexpr TensorFormat formats[] = {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn};

std::vector<Geometry> geometries() {
  Geometry strided, grouped, wide, dilated;
  strided.stride[0] = 2, strided.stride[1] = 3, strided.pad_begin[0] = 1, strided.pad_end[1] = 2;
  grouped.groups = 2, grouped.c = 8, grouped.k = 4, grouped.n = 8;
  wide.c = 32, wide.k = 64, wide.r = 2, wide.s = 2, wide.h = 5, wide.w = 6, wide.pad_begin[1] = 1;
  dilated.dilation[0] = 2, dilated.stride[0] = 2, dilated.stride[1] = 4, dilated.s = 2, dilated.n = 1;
  return {strided, grouped, wide, dilated};
}

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
  EXPECT_GT(make_plan(p, emulator(), options).recipe.product.splits, 1);
  expect_right(p);
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
    for (Device const& device : {emulator(), this_device(Backend::reference)}) {
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
  Device device = emulator();
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
      jit::Cubin const cubin = jit::compile(cuda::convolution_source(make_plan(p, device, options)));
      EXPECT_EQ(cubin.local_bytes, 0) << kernel;
    }
}

}  // namespace
}  // namespace cosmati
