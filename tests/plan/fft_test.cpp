// Convolution by Fourier transforms: results in the emulator, their error, and when it is chosen.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "cosmati/epilogue/parse.h"
#include "src/backend/cuda/executor.h"
#include "src/backend/emulator/fftw.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/fft/fft.h"
#include "src/plan/conv/fft/fft_bound.h"
#include "src/plan/conv/program.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

class Fft : public testing::Test {
 protected:
  void SetUp() override {
    if (!emulator::fftw_failure().empty()) GTEST_SKIP() << emulator::fftw_failure();
  }
};

Geometry padded() {  // 5x5, same extents of input and output
  Geometry g;
  g.r = g.s = 5;
  g.pad_begin[0] = g.pad_begin[1] = g.pad_end[0] = g.pad_end[1] = 2;
  return g;
}
Geometry ragged() {  // no extent is a multiple of another
  Geometry g;
  g.n = 3, g.c = 5, g.k = 7, g.h = 13, g.w = 11, g.r = 7, g.s = 4;
  g.pad_begin[0] = 5, g.pad_end[1] = 3, g.pad_begin[1] = 1;
  return g;
}
Geometry strided() {
  Geometry g;
  g.h = 14, g.w = 12, g.r = 5, g.s = 4, g.stride[0] = 2, g.stride[1] = 3;
  g.pad_begin[0] = 2, g.pad_end[0] = 1, g.pad_end[1] = 3;
  return g;
}
Geometry grouped() {
  Geometry g = padded();
  g.groups = 3, g.c = 6, g.k = 9;
  return g;
}
Geometry depthwise() {
  Geometry g = padded();
  g.groups = g.c = g.k = 5, g.stride[1] = 2, g.r = 7;
  return g;
}
Geometry dilated() {
  Geometry g;
  g.h = 15, g.w = 13, g.dilation[0] = 3, g.dilation[1] = 2, g.stride[1] = 2, g.pad_begin[1] = 2;
  return g;
}
Geometry beyond() {  // more padding than taps
  Geometry g;
  g.h = 4, g.w = 5, g.pad_begin[0] = 4, g.pad_end[0] = 5, g.pad_begin[1] = 6;
  return g;
}
Geometry sparse() {  // strides larger than the filter
  Geometry g;
  g.h = 11, g.w = 10, g.r = 2, g.s = 1, g.stride[0] = 4, g.stride[1] = 3;
  return g;
}

// For small integers the sums are integers, which f32 transforms approximate closely.
void expect_near(ConvolutionProblem const& p, std::string const& policy = "",
                 std::size_t max_workspace = ~std::size_t{0}, double margin = 0.01) {
  Computed const ours = run(p, emulated_device(), "fft", policy, max_workspace);
  Computed const expected = run(p, this_device(Backend::reference), "", "");
  for (Index i = 0; i < ours.result.layout().span(); ++i) {
    double const found = load(ours.result.type(), ours.result.data(), i),
                 right = load(ours.result.type(), expected.result.data(), i);
    ASSERT_TRUE(std::fabs(found - right) <= margin)
        << found << " for " << right << ", " << ours.recipe << ", direction " << static_cast<int>(p.direction)
        << ", element " << i;
  }
}

TEST_F(Fft, EveryDirectionAndLayout) {
  for (ConvolutionDirection const direction : directions)
    for (TensorFormat const format : formats)
      for (Geometry const& g :
           {padded(), ragged(), strided(), grouped(), depthwise(), dilated(), beyond(), sparse()})
        expect_near(problem_of(direction, DataType::f32, DataType::f32, format, g));
}

TEST_F(Fft, TilesOverlapInTheImage) {
  Geometry large = ragged();
  large.h = 31, large.w = 26, large.n = 2;
  for (ConvolutionDirection const direction : directions)
    for (Geometry const& g : {large, strided(), depthwise(), dilated()})
      for (int const extent : {16, 12}) {
        std::string const policy = "extent=" + std::to_string(extent);
        auto const p = problem_of(direction, DataType::f32, DataType::f32, TensorFormat::nchw, g);
        PlanOptions options;
        options.kernel = "fft", options.policy = policy;
        FftRecipe const recipe = std::get<FftRecipe>(make_plan(p, emulated_device(), options).recipe.own);
        EXPECT_LE(std::max(recipe.rows, recipe.columns), extent);
        EXPECT_GT(recipe.tiles_down * recipe.tiles_across, g.h == large.h ? 1 : 0);
        expect_near(p, policy);
      }
}

TEST_F(Fft, TypesOfTensorsAndTransforms) {
  for (DataType const type : {DataType::f16, DataType::bf16, DataType::tf32, DataType::f64})
    for (ConvolutionDirection const direction : directions)
      expect_near(problem_of(direction, type, type == DataType::f64 ? type : DataType::f32,
                             TensorFormat::nhwc, padded()),
                  "", ~std::size_t{0}, type == DataType::f64 ? 1e-10 : 0.5);
}

TEST_F(Fft, EpiloguesSeeTheResultsIndices) {
  for (ConvolutionDirection const direction : {ConvolutionDirection::forward, ConvolutionDirection::data})
    for (TensorFormat const format : formats)
      for (Geometry const& g : {strided(), grouped(), depthwise()}) {
        auto p = problem_of(direction, DataType::f32, DataType::f32, format, g);
        TensorDescription const result = direction == ConvolutionDirection::forward ? p.y : p.x;
        p.epilogue.expression = epilogue::parse("relu(2 * acc + bias[k] - row[p, n]) + rest[n, k, p, q]",
                                                epilogue::convolution_indices);
        p.epilogue.operands = {describe(DataType::f32, {result.extent(1)}),
                               describe(DataType::f32, {result.extent(2), result.extent(0)}), result};
        expect_near(p);
      }
}

// Slices are ranges of images, or of channels for a filter gradient.
TEST_F(Fft, SlicesFitIntoTheWorkspace) {
  for (ConvolutionDirection const direction : directions) {
    auto const p = problem_of(direction, DataType::f32, DataType::f32, TensorFormat::nchw, ragged());
    PlanOptions options;
    options.kernel = "fft";
    auto const whole = make_plan(p, emulated_device(), options);
    Index const all = direction == ConvolutionDirection::filter ? 5 : 3;
    EXPECT_EQ(std::get<FftRecipe>(whole.recipe.own).slice, all);
    options.policy = "extent=" + std::to_string(std::max(std::get<FftRecipe>(whole.recipe.own).rows,
                                                         std::get<FftRecipe>(whole.recipe.own).columns));
    options.max_workspace = whole.workspace_bytes * 8 / 10;
    auto const sliced = make_plan(p, emulated_device(), options);
    EXPECT_LE(sliced.workspace_bytes, options.max_workspace);
    EXPECT_LT(std::get<FftRecipe>(sliced.recipe.own).slice, all);
    expect_near(p, options.policy.text, options.max_workspace);
  }
}

TEST_F(Fft, OnePreparedConvolutionRunsOnManyThreads) {
  auto const p =
      problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, TensorFormat::nchw, padded());
  PlanOptions options;
  options.kernel = "fft";
  auto const prepared = prepare(make_plan(p, emulated_device(), options));
  Tensor const x = filled(p.x, 1), w = filled(p.w, 2);
  std::vector<Tensor> results;
  for (int i = 0; i < 3; ++i) results.emplace_back(p.y);
  std::vector<std::thread> threads;
  for (Tensor& result : results)
    threads.emplace_back([&prepared, &x, &w, &result] {
      Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
      ConvolutionProblem::Arguments arguments;
      arguments.x = x.data(), arguments.w = w.data(), arguments.y = result.data();
      prepared.run(arguments, workspace.data());
    });
  for (std::thread& thread : threads) thread.join();
  for (Index i = 0; i < results.front().size(); ++i) {
    ASSERT_EQ(results[1].get(i), results[0].get(i));
    ASSERT_EQ(results[2].get(i), results[0].get(i));
  }
}

struct Deviation {
  double of_results = 0;  // root mean square error over the root mean square of the results
  double of_bound = 0;    // largest error over fft_bound()
};
Deviation deviation(ConvolutionProblem const& p) {
  PlanOptions options;
  options.kernel = "fft";
  auto const plan = make_plan(p, emulated_device(), options);
  bool const forward = p.direction == ConvolutionDirection::forward,
             data = p.direction == ConvolutionDirection::data;
  unsigned state = 1;
  auto const drawn = [&state](TensorDescription const& description) {
    Tensor tensor(description);
    for (Index i = 0; i < tensor.layout().span(); ++i) {
      double sum = -6;  // the sum of twelve uniform numbers is nearly normal
      for (int j = 0; j < 12; ++j) sum += ((state = state * 1664525 + 1013904223) >> 8) * 0x1p-24;
      store(description.type, tensor.data(), i, sum);
    }
    return tensor;
  };
  Tensor const x = drawn(p.x), w = drawn(p.w), y = drawn(p.y);
  auto const arguments = [&](Tensor& result) {
    ConvolutionProblem::Arguments all;
    all.x = x.data(), all.w = w.data(), all.dy = y.data();
    (forward ? all.y : data ? all.dx : all.dw) = result.data();
    return all;
  };
  ConvolutionProblem exact = p;
  TensorDescription& result = forward ? exact.y : data ? exact.x : exact.w;
  Tensor ours(result);
  result.type = DataType::f64;
  Tensor truth(result), workspace(DataType::u8, Shape(static_cast<Index>(plan.workspace_bytes)));
  prepare(plan).run(arguments(ours), workspace.data());
  prepare(make_plan(exact, this_device(Backend::reference))).run(arguments(truth), nullptr);
  Tensor const bound = plan::fft_bound(plan, arguments(ours));
  double error = 0, all = 0, share = 0;
  for (Index i = 0; i < ours.size(); ++i) {
    double const off = std::fabs(ours.get(i) - truth.get(i));
    error += off * off;
    all += truth.get(i) * truth.get(i);
    share = std::max(share, off / bound.get(i));
  }
  return {std::sqrt(error / all), share};
}

TEST_F(Fft, TheErrorIsWhatThePlanExpects) {
  Geometry g = padded();
  g.n = 2, g.c = 14, g.k = 10, g.h = 21, g.w = 19, g.r = g.s = 9;
  for (ConvolutionDirection const direction : directions)
    for (DataType const type : {DataType::f32, DataType::f16}) {
      auto const p = problem_of(direction, type, DataType::f32, TensorFormat::nhwc, g);
      PlanOptions options;
      options.kernel = "fft";
      FftRecipe const recipe = std::get<FftRecipe>(make_plan(p, emulated_device(), options).recipe.own);
      plan::FftForm const form = plan::fft_forms(p).front();
      plan::FftExtents const extents = plan::fft_extents(form, recipe, form.outers);
      double const expected =
          plan::fft_error(DataType::f32, recipe.factor, extents.depths, extents.positions);
      Deviation const found = deviation(p);
      std::string const what = std::string(name_of(type)) + ", factors " + name_of(recipe.factor) +
                               ", direction " + std::to_string(static_cast<int>(direction));
      EXPECT_GT(found.of_results, 0.5 * expected) << what;
      EXPECT_LT(found.of_results, 1.5 * expected) << what;
      EXPECT_LT(found.of_bound, 1) << what;
      EXPECT_GT(found.of_bound, 0.02) << what;
    }
}

Considered considered(ConvolutionProblem const& p, PlanOptions const& options,
                      std::string const& kernel = "fft", Backend backend = Backend::cuda) {
  Device device = emulated_device();
  device.backend = backend;
  return entry_of(make_plan(p, device, options).considered, kernel);
}

ConvolutionProblem layer(int taps, DataType type = DataType::f32) {
  Geometry g;
  g.n = 16, g.c = g.k = 64, g.h = g.w = 56, g.r = g.s = taps;
  g.pad_begin[0] = g.pad_begin[1] = g.pad_end[0] = g.pad_end[1] = taps / 2;
  return problem_of(ConvolutionDirection::forward, type, type, TensorFormat::nchw, g);
}

TEST(FftChoice, LargeFiltersOfF32AreTransformed) {
  Device device = emulated_device();
  device.backend = Backend::cuda;
  for (int const taps : {11, 15, 21, 31}) EXPECT_EQ(make_plan(layer(taps), device).kernel, "fft") << taps;
  for (int const taps : {1, 3}) EXPECT_NE(make_plan(layer(taps), device).kernel, "fft") << taps;
}

TEST(FftChoice, PaddingIsShared) {  // 56 + 15 positions instead of 56 + 30
  PlanOptions options;
  options.kernel = "fft";
  Device device = emulated_device();
  device.backend = Backend::cuda;
  FftRecipe const recipe = std::get<FftRecipe>(make_plan(layer(31), device, options).recipe.own);
  EXPECT_LE(recipe.rows, 72);
  EXPECT_LE(recipe.columns, 72);
}

TEST(FftChoice, ErrorsLimitTheFactors) {
  PlanOptions options;
  EXPECT_NE(considered(layer(15, DataType::f16), options).recipe.find(" of f32"), std::string::npos);
  options.max_error = 1e-7;
  EXPECT_THROW(considered(layer(15), options), Error);  // sums in f32 have larger errors
  options.max_error = 2e-6;
  EXPECT_EQ(considered(layer(15), options).refusal, "");
  options.deterministic = true;
  EXPECT_EQ(considered(layer(15), options).refusal, "");
}

TEST(FftChoice, RefusalsSayWhatIsInTheWay) {
  PlanOptions options;
  auto const bytes =
      problem_of(ConvolutionDirection::forward, DataType::s8, DataType::s32, TensorFormat::nhwc, padded());
  EXPECT_NE(considered(bytes, options).refusal.find("data type s8 is not supported"), std::string::npos);
  options.max_workspace = 1000;
  EXPECT_NE(considered(layer(15), options).refusal.find("at most 1000"), std::string::npos);
  options = {};
  options.policy = "extent=64";
  EXPECT_NE(considered(layer(15), options, "implicit_gemm").refusal.find("extent=64 was requested"),
            std::string::npos);
  options.kernel = "fft";
  for (char const* policy : {"extent=1", "extent=x", "extent=", "extent=99999"}) {
    EXPECT_THROW(PolicyRequest{policy}, Error) << policy;
  }
  options.policy = "extent=14";  // smaller than a filter
  EXPECT_THROW(considered(layer(15), options), Error);
}

TEST(FftChoice, TheKernelsCompileWithoutSpills) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  Device device = emulated_device();
  device.backend = Backend::cuda;
  for (ConvolutionDirection const direction : {ConvolutionDirection::data, ConvolutionDirection::filter})
    for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc}) {
      Geometry g = padded();
      g.c = 64, g.k = 32, g.h = g.w = 28;
      DataType const type = format == TensorFormat::nchw ? DataType::f32 : DataType::f16;
      auto p = problem_of(direction, type, type, format, g);
      if (direction == ConvolutionDirection::data) {
        p.epilogue.expression = epilogue::parse("relu(acc + bias[k])", epilogue::convolution_indices);
        p.epilogue.operands = {describe(DataType::f32, {p.x.extent(1)})};
      }
      if (direction == ConvolutionDirection::data &&
          format == TensorFormat::nhwc)  // several planes are multiplied
        p = problem_of(direction, type, type, format, depthwise());
      PlanOptions options;
      options.kernel = "fft";
      program::Program const program = plan::program_of(make_plan(p, device, options));
      for (program::KernelSpec const& kernel : program.kernels)
        EXPECT_EQ(jit::compile(cuda::kernel_source(kernel, device.gpu)).local_bytes, 0) << kernel.key();
    }
}

}  // namespace
}  // namespace cosmati
