// Convolutions with more pixels than a kernel can count: divided by images; which extents the slices get.
#include "src/plan/conv/nested/image_slices.h"

#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "reference/reference.h"
#include "src/plan/conv/choice.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

TEST(ImageSlices, ManyPixelsAreDividedAndFewAreNot) {
  Geometry g;
  g.n = 3'000'000, g.c = 1, g.k = 2, g.h = g.w = 30;
  for (auto const direction :
       {ConvolutionDirection::forward, ConvolutionDirection::data, ConvolutionDirection::filter}) {
    auto const plan = make_plan(problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nchw, g),
                                emulated_device());
    EXPECT_EQ(plan.kernel, "image_slices");
    EXPECT_EQ(std::get<SlicesRecipe>(plan.recipe.own).images,
              1'000'000);  // 2^30 pixels: 1.37 million images of x, 1.19 million of dx
    EXPECT_NE(entry_of(plan.considered, "implicit_gemm").refusal.find("split the batch"), std::string::npos);
  }
  g.n = 2;
  auto const small = make_plan(
      problem_of(ConvolutionDirection::forward, DataType::f16, DataType::f16, TensorFormat::nchw, g),
      emulated_device());
  EXPECT_EQ(entry_of(small.considered, "image_slices").refusal,
            "splits batches of more than 2147483647 pixels; this one has 1568");
  g.n = 1, g.h = 70'000, g.w = 40'000;
  auto const p =
      problem_of(ConvolutionDirection::forward, DataType::f16, DataType::f16, TensorFormat::nchw, g);
  try {
    (void)make_plan(p, emulated_device());
    FAIL() << "one image is not divided";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("one image has 2799780004 pixels; at most 2147483647"),
              std::string::npos)
        << error.what();
  }
}

// The error limit applies to the slices.
TEST(ImageSlices, TheirErrorIsLimited) {
  Geometry g;
  g.n = 3'000'000, g.c = 64, g.k = 64, g.h = g.w = 30;
  PlanOptions options;
  for (double const limit : {1e-3, 6e-7}) {
    options.max_error = limit;
    auto const plan = make_plan(
        problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, TensorFormat::nhwc, g),
        emulated_device(), options);
    ASSERT_EQ(plan.kernel, "image_slices");
    EXPECT_LE(entry_of(plan.considered, "image_slices").expected_error, limit);
    auto const slice = plan::plan_of_slice(plan);
    // The error of the fastest kernel exceeds the second limit.
    EXPECT_EQ(slice.chosen().expected_error <= 6e-7, limit == 6e-7) << slice.kernel;
  }
}

// Ten million images, none or only a few of which fit into the workspace: found by bisection.
TEST(ImageSlices, SlicesOfTransformsAreFoundAtOnce) {
  EXPECT_EQ(plan::largest_slice(10, [](Index slice) { return slice <= 4; }), 4);  // 4, 4, 2
  EXPECT_EQ(plan::largest_slice(10, [](Index) { return false; }), 1);
  EXPECT_EQ(plan::largest_slice(10, [](Index) { return true; }), 10);
  EXPECT_EQ(plan::largest_slice(0, [](Index) { return true; }), 0);
  int asked = 0;
  EXPECT_EQ(plan::largest_slice(10'000'000, [&](Index slice) { return ++asked, slice <= 3; }), 3);
  EXPECT_LT(asked, 30);
}

// Five images, two at a time: the last slice is smaller. Compared with the reference, exactly.
void expect_same(ConvolutionProblem const& problem, std::size_t max_workspace) {
  Device const device = emulated_device();
  Plan<ConvolutionProblem> plan = make_plan(problem, device);
  PlanOptions options;
  options.max_workspace = max_workspace;
  auto const offer = plan::slices_of_images(problem, device, options, 2);
  ASSERT_EQ(offer.refusal, "");
  ASSERT_LE(offer.workspace_bytes, max_workspace);
  plan.kernel = "image_slices";
  plan.recipe = offer.recipe;
  plan.workspace_bytes = offer.workspace_bytes;
  auto const prepared = prepare(plan);
  EXPECT_NE(offer.text.find("3 slices of 2 images, each by "), std::string::npos) << offer.text;

  Tensor const first = filled(problem.direction == ConvolutionDirection::data ? problem.y : problem.x, 1);
  Tensor const second = filled(problem.direction == ConvolutionDirection::filter ? problem.y : problem.w, 2);
  std::vector<Tensor> operands;
  std::vector<void const*> pointers;
  for (TensorDescription const& operand : problem.epilogue.operands) {
    operands.push_back(filled(operand, 3));
    pointers.push_back(operands.back().data());
  }
  auto const computed = [&](auto const& run) {
    TensorDescription const& of = problem.direction == ConvolutionDirection::forward ? problem.y
                                  : problem.direction == ConvolutionDirection::data  ? problem.x
                                                                                     : problem.w;
    std::vector<Tensor> results;
    results.emplace_back(of);
    std::vector<void*> stores;
    for (TensorDescription const& store : problem.epilogue.stores) results.emplace_back(store);
    for (Tensor& result : results) result.fill(-77);
    for (std::size_t i = 1; i < results.size(); ++i) stores.push_back(results[i].data());
    ConvolutionProblem::Arguments arguments;
    void* const result = results[0].data();
    switch (problem.direction) {
      case ConvolutionDirection::forward:
        arguments.x = first.data(), arguments.w = second.data(), arguments.y = result;
        break;
      case ConvolutionDirection::data:
        arguments.dy = first.data(), arguments.w = second.data(), arguments.dx = result;
        break;
      default: arguments.x = first.data(), arguments.dy = second.data(), arguments.dw = result; break;
    }
    arguments.operands = pointers;
    arguments.stores = stores;
    run(arguments);
    return results;
  };
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(offer.workspace_bytes) + 1));
  auto const results = computed([&](auto const& arguments) { prepared.run(arguments, workspace.data()); });
  auto const wanted = computed([&](auto const& arguments) { reference::run(problem, arguments); });
  for (std::size_t i = 0; i < results.size(); ++i)
    for (Index at = 0; at < results[i].size(); ++at)
      ASSERT_EQ(results[i].get(at), wanted[i].get(at)) << "result " << i << ", element " << at;
}

TEST(ImageSlices, GiveWhatTheWholeGives) {
  Geometry g;
  g.n = 5;
  g.pad_begin[0] = g.pad_end[1] = 1;
  for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn})
    for (auto const direction :
         {ConvolutionDirection::forward, ConvolutionDirection::data, ConvolutionDirection::filter}) {
      SCOPED_TRACE(std::string(name_of(format)) + ' ' + std::to_string(static_cast<int>(direction)));
      expect_same(problem_of(direction, DataType::f32, DataType::f32, format, g), ~std::size_t{0});
      g.stride[0] = 2;
      expect_same(problem_of(direction, DataType::f16, DataType::f32, format, g), ~std::size_t{0});
      g.stride[0] = 1;
    }
}

// The epilogue's operands and stores move with the images; the bias does not.
TEST(ImageSlices, WithAnEpilogue) {
  Geometry g;
  g.n = 5;
  auto problem =
      problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, TensorFormat::nhwc, g);
  problem.epilogue = {epilogue::parse("store(before, acc); relu(acc + bias[k]) + residual[n, k, p, q]",
                                      epilogue::convolution_indices),
                      {describe(DataType::f32, Shape(g.k)), problem.y},
                      {problem.y}};
  expect_same(problem, ~std::size_t{0});
}

TEST(ImageSlices, KeepTheLimitOfWorkspace) {
  Geometry g;
  g.n = 5;
  auto const problem =
      problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, TensorFormat::nchw, g);
  // Room for the sums of three slices, each of 6x4x3x3 values.
  expect_same(problem, 2816);
  PlanOptions nothing;
  nothing.max_workspace = 0;
  EXPECT_GT(plan::slices_of_images(problem, emulated_device(), nothing, 2).workspace_bytes, 0u);
}

}  // namespace
}  // namespace cosmati
