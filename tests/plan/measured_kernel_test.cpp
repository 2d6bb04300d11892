// Lines of a tuning file that name a problem's fastest candidate, and plans that use them.
#include "src/plan/measured_kernel.h"

#include <gtest/gtest.h>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/find.h"
#include "cosmati/ops/gemm.h"
#include "tests/support/complaint.h"

namespace cosmati {
namespace {

using testing::complaint_of;

ConvolutionProblem convolution(TensorFormat format = TensorFormat::nchw) {
  ConvolutionProblem problem;
  problem.x = problem.y = describe(DataType::f32, image_layout(format, 2, 8, 12, 12));
  problem.w = describe(DataType::f32, image_layout(format, 8, 8, 3, 3));
  for (int i = 0; i < 2; ++i) problem.pad_begin[i] = problem.pad_end[i] = 1;
  return problem;
}

Device host(Backend backend) { return this_device(backend, 1); }

template <class Problem>
TuningLine line_for(Problem const& problem, Device const& device, std::string const& kernel) {
  TuningLine line;
  line.problems = plan::measured_class(problem, device.backend);
  line.gpu = plan::device_name(device);
  line.kernel = kernel;
  line.measured = "2x8x12x12x8x3x3";
  line.seconds = 1e-4;
  line.planned_seconds = 2e-4;
  line.driver = "a processor";
  line.time = "2026-01-31T23:59:59Z";
  return line;
}

PlanOptions by(TuningLine const& line) {
  PlanOptions options;
  options.tuning = std::make_shared<TuningTable const>(TuningTable::parse(to_string(line), "tuning.txt"));
  return options;
}

TEST(MeasuredKernel, AClassIsAllThatThePlanDependsOn) {
  EXPECT_EQ(plan::measured_class(convolution(), Backend::emulator),
            "conv backend=emulator direction=forward x=f32/nchw/2x8x12x12/16 w=f32/nchw/8x8x3x3/16 "
            "y=f32/nchw/2x8x12x12/16 db=none stride=1,1 pad=1,1,1,1 dilation=1,1 groups=1 epilogue=none");
  std::string const one = plan::measured_class(convolution(), Backend::cpu);
  EXPECT_NE(plan::measured_class(convolution(), Backend::cuda), one);
  EXPECT_NE(plan::measured_class(convolution(TensorFormat::nhwc), Backend::cpu), one);
  ConvolutionProblem other = convolution();
  other.direction = ConvolutionDirection::data;
  EXPECT_NE(plan::measured_class(other, Backend::cpu), one);
  other = convolution();
  other.x.layout.stride[0] += 4;
  EXPECT_NE(plan::measured_class(other, Backend::cpu).find("x=f32/1156,144,12,1/2x8x12x12/16 "),
            std::string::npos);
  other = convolution();
  other.w.alignment = 4;
  EXPECT_NE(plan::measured_class(other, Backend::cpu), one);
  Device fewer = host(Backend::cpu), more = fewer;
  more.threads = 7;
  EXPECT_NE(plan::device_name(fewer), plan::device_name(more));
}

TEST(MeasuredKernel, ALineIsReadAsItIsWritten) {
  for (Backend const backend : {Backend::cpu, Backend::emulator, Backend::cuda}) {
    Device device = host(Backend::emulator);
    device.backend = backend;
    TuningLine line = line_for(convolution(), device, "direct");
    for (std::string const recipe : {"", "one thread per element, 1 launches"}) {
      line.recipe = recipe;
      TuningTable const table = TuningTable::parse(to_string(line), "tuning.txt");
      TuningLine const* const again = table.find(line.problems, line.gpu);
      ASSERT_NE(again, nullptr) << to_string(line);
      EXPECT_EQ(to_string(*again), to_string(line));
      EXPECT_EQ(again->recipe, recipe);
    }
  }
  GemmProblem product;
  product.a = product.b = product.d = describe(DataType::f32, Shape(2, 48, 48));
  TuningLine const line = line_for(product, host(Backend::cpu), "reference");
  EXPECT_EQ(TuningTable::parse(to_string(line), "x").text().find(to_string(line)),
            TuningTable().text().size());
}

TEST(MeasuredKernel, PlansGoByTheLineWithinTheirLimits) {
  for (Backend const backend : {Backend::cpu, Backend::emulator}) {
    Device const device = host(backend);
    auto const own = make_plan(convolution(), device);
    std::string other;
    for (Considered const& entry : own.considered)
      if (entry.refusal.empty() && entry.kernel != own.kernel) other = entry.kernel;
    ASSERT_NE(other, "");
    PlanOptions options = by(line_for(convolution(), device, other));
    auto const plan = make_plan(convolution(), device, options);
    EXPECT_EQ(plan.kernel, other);
    EXPECT_EQ(plan.workspace_bytes, entry_of(own.considered, other).workspace_bytes);
    EXPECT_EQ(entry_of(plan.considered, other).note,
              "measured, tuning.txt, line 1: 2x8x12x12x8x3x3 took 100 us, as planned 200 us");
    // A requested kernel takes precedence; other problems have no line; a rejected kernel is skipped.
    options.kernel = own.kernel;
    EXPECT_EQ(make_plan(convolution(), device, options).kernel, own.kernel);
    options.kernel.clear();
    EXPECT_EQ(entry_of(make_plan(convolution(TensorFormat::nhwc), device, options).considered, other).note,
              "");
    TuningLine refused = line_for(convolution(), device, "chwn16");
    refused.kernel = backend == Backend::cpu ? "chwn16" : "depthwise";
    auto const passed_over = make_plan(convolution(), device, by(refused));
    EXPECT_EQ(passed_over.kernel, own.kernel);
    EXPECT_EQ(entry_of(passed_over.considered, refused.kernel).note,
              "tuning.txt, line 1 is ignored: the kernel is rejected");
    TuningLine old = line_for(convolution(), device, other);
    old.recipe = "in another way";
    EXPECT_NE(entry_of(make_plan(convolution(), device, by(old)).considered, other)
                  .note.find(", with another recipe: in another way"),
              std::string::npos);
  }
}

TEST(MeasuredKernel, TheLineOfWhatWasFoundMakesThatThePlan) {
  Device const device = host(Backend::emulator);
  auto const found = find(convolution(), device, {.seconds = 1e-4});
  ASSERT_GE(found.size(), 2U);
  TuningLine line = tuning_line(found, {});
  EXPECT_EQ(line.kernel, found.front().prepared.plan().kernel);
  EXPECT_EQ(line.measured, "2x8x12x12x8x3x3");
  EXPECT_EQ(line.seconds, found.front().seconds);
  EXPECT_GE(line.planned_seconds, line.seconds);
  line.time = "2026-01-31T23:59:59Z";
  auto const plan = make_plan(convolution(), device, by(line));
  EXPECT_EQ(plan.kernel, line.kernel);
  EXPECT_EQ(plan.recipe, found.front().prepared.plan().recipe);

  GemmProblem empty;
  empty.a = empty.b = empty.d = describe(DataType::f32, Shape(2, 0, 0));
  auto const nothing = find(empty, host(Backend::reference), {.seconds = 1e-4});
  EXPECT_NE(complaint_of([&] { (void)tuning_line(nothing, {}); }).find("empty products"), std::string::npos);
}

// A product on a GPU has a line of cosmati tune, with its policy.
TEST(MeasuredKernel, AProductOnAGpuHasALineWithItsPolicy) {
  Device device = host(Backend::emulator);
  device.backend = Backend::cuda;
  GemmProblem product;
  product.a = product.b = product.d = describe(DataType::f32, Shape(2, 512, 512));
  PlanOptions multistage;
  multistage.kernel = "multistage";
  std::vector<Found<GemmProblem>> found(1);
  found[0].prepared = Prepared<GemmProblem>(make_plan(product, device, multistage), nullptr);
  found[0].seconds = 1e-5;
  TuningLine line = tuning_line(found, {});
  EXPECT_EQ(line.problems.find("gemm a=f32/"), 0U) << line.problems;
  EXPECT_NE(line.policy, "");
  line.time = "2026-01-31T23:59:59Z";
  auto const plan = make_plan(product, device, by(line));
  EXPECT_EQ(plan.kernel, "multistage");
  EXPECT_EQ(plan.recipe.policy_name, "tuned");
}

TEST(MeasuredKernel, BuiltInLinesNameKernelsOfConvolutions) {
  Device device;
  device.backend = Backend::cuda;
  device.gpu = describe_gpu("h200");
  ConvolutionProblem problem;
  problem.direction = ConvolutionDirection::data;
  problem.x = describe(DataType::f16, image_layout(TensorFormat::nhwc, 16, 512, 28, 28));
  problem.y = describe(DataType::f16, image_layout(TensorFormat::nhwc, 16, 256, 14, 14));
  problem.w = describe(DataType::f16, image_layout(TensorFormat::nhwc, 256, 512, 1, 1));
  problem.stride[0] = problem.stride[1] = 2;
  auto const plan = make_plan(problem, device);
  EXPECT_EQ(plan.kernel, "implicit_gemm");
  EXPECT_NE(plan.chosen().note.find("measured, built-in measurements, line "), std::string::npos)
      << plan.chosen().note;
  PlanOptions predicted;
  predicted.built_in_tuning = false;
  EXPECT_NE(make_plan(problem, device, predicted).kernel, plan.kernel);
  for (TensorDescription* const tensor : {&problem.x, &problem.w, &problem.y}) tensor->type = DataType::bf16;
  EXPECT_EQ(make_plan(problem, device).kernel, plan.kernel) << "bf16 takes the same time";
  problem.x.type = DataType::f32;
  EXPECT_EQ(make_plan(problem, device).chosen().note.find("measured, built-in"), std::string::npos);
}

ConvolutionProblem filter_gradient(Index n, Index c, Index h, Index w, Index k, Index side) {
  ConvolutionProblem problem;
  problem.direction = ConvolutionDirection::filter;
  problem.x = describe(DataType::f16, image_layout(TensorFormat::nhwc, n, c, h, w));
  problem.y = describe(DataType::f16, image_layout(TensorFormat::nhwc, n, k, h, w));
  problem.w = describe(DataType::f16, image_layout(TensorFormat::nhwc, k, c, side, side));
  for (Index* const pad : {problem.pad_begin, problem.pad_end}) pad[0] = pad[1] = side / 2;
  return problem;
}

TEST(MeasuredKernel, LinesWithTheBiasGradientApartAreForGradientsWithoutOne) {
  Device device;
  device.backend = Backend::cuda;
  device.gpu = describe_gpu("h200");
  auto const is_measured = [&](ConvolutionProblem const& problem) {
    return make_plan(problem, device).chosen().note.find("measured, built-in") != std::string::npos;
  };
  ConvolutionProblem apart = filter_gradient(16, 128, 40, 175, 128, 3);
  EXPECT_TRUE(is_measured(apart));
  EXPECT_EQ(make_plan(apart, device).kernel, "warp_specialized");
  apart.db = describe(DataType::f16, Shape(128));
  EXPECT_TRUE(is_measured(apart));
  // A kernel that computes the bias gradient as well may lose its advantage without it.
  ConvolutionProblem problem = apart;
  PlanOptions direct;
  direct.kernel = "direct";
  std::vector<Found<ConvolutionProblem>> found(1);
  found[0].prepared = Prepared<ConvolutionProblem>(make_plan(problem, device, direct), nullptr);
  found[0].seconds = 1e-5;
  TuningLine line = tuning_line(found, {});
  line.time = "2026-01-31T23:59:59Z";
  problem.db = {};
  EXPECT_EQ(make_plan(problem, device, by(line)).kernel, "direct");
  line.recipe = "one thread per element, bias gradient included";
  EXPECT_NE(make_plan(problem, device, by(line)).kernel, "direct");
  // A gradient of the data has no bias gradient to leave out.
  ConvolutionProblem data = filter_gradient(16, 128, 40, 175, 128, 3);
  data.direction = ConvolutionDirection::data;
  EXPECT_FALSE(is_measured(data));
}

}  // namespace
}  // namespace cosmati
