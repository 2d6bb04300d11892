// Convolutions with groups by wgmma: in the emulator, against the reference, also with infinities in another
// group; rejections, the choice for a GPU, and composed kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cosmati/epilogue/parse.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/grouped/group_windows.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

constexpr auto forward = ConvolutionDirection::forward, data = ConvolutionDirection::data;
constexpr char const* kernel = "group_windows";

// `inputs`: channels of a group that are summed; `outputs`: those of the result.
struct Groups {
  Index inputs, outputs, groups;
};
ConvolutionProblem problem(ConvolutionDirection direction, Groups const& of, Index n, Index h, Index w,
                           Index stride = 1, DataType type = DataType::f16) {
  Geometry g;
  g.n = n, g.h = h, g.w = w, g.groups = of.groups;
  g.c = of.groups * (direction == data ? of.outputs : of.inputs);
  g.k = of.groups * (direction == data ? of.inputs : of.outputs);
  for (int i : {0, 1}) g.stride[i] = stride, g.pad_begin[i] = g.pad_end[i] = 1;
  return problem_of(direction, type, type, TensorFormat::nhwc, g);
}
ConvolutionProblem with_taps(ConvolutionDirection direction, Groups const& of, Index rows, Index columns,
                             Index dilation) {
  Geometry g;
  g.n = 2, g.h = 11, g.w = 10, g.groups = of.groups, g.r = rows, g.s = columns;
  g.c = of.groups * (direction == data ? of.outputs : of.inputs);
  g.k = of.groups * (direction == data ? of.inputs : of.outputs);
  g.dilation[0] = dilation, g.pad_begin[0] = 2, g.pad_end[1] = 1;
  return problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nhwc, g);
}

// All shapes of the catalogue: several patches, images of fewer outputs than a patch, parts of a block's
// groups.
std::vector<ConvolutionProblem> problems() {
  return {problem(forward, {16, 16, 4}, 2, 9, 21),     problem(forward, {16, 16, 6}, 1, 8, 16),
          problem(data, {32, 32, 2}, 3, 7, 7),         problem(data, {32, 32, 3}, 2, 9, 8),
          problem(forward, {16, 24, 5}, 2, 35, 17, 2), problem(forward, {16, 24, 4}, 1, 16, 16, 2),
          problem(data, {32, 48, 3}, 1, 10, 9),        with_taps(forward, {48, 8, 3}, 2, 3, 2)};
}

TEST(GroupWindows, EveryShapeMatchesTheReference) {
  for (ConvolutionProblem const& p : problems()) expect_right(p, kernel);
}

// 64 summed channels, and a stride for the rows only.
TEST(GroupWindows, AStrideOfRows) {
  auto p = problem(forward, {64, 32, 2}, 2, 15, 8);
  p.stride[0] = 2;
  p.y = describe(DataType::f16, image_layout(TensorFormat::nhwc, 2, 64, 8, 8));
  expect_right(p, kernel);
}

TEST(GroupWindows, Epilogues) {
  for (ConvolutionProblem p : {problems()[0], problems()[4]}) {
    p.epilogue.expression =
        epilogue::parse("relu(acc + bias[k] - rest[n, k, p, q])", epilogue::convolution_indices);
    p.epilogue.operands = {describe(DataType::f32, {p.y.extent(1)}), p.y};
    expect_right(p, kernel);
  }
}

// A product reads lines that contain channels of several groups.
TEST(GroupWindows, InfinitiesDoNotSpreadToOtherGroups) {
  auto const p = problem(forward, {16, 16, 4}, 2, 9, 21);
  Tensor x = filled(p.x, 1);
  Tensor const w = filled(p.w, 2);
  store(p.x.type, x.data(), 64 * 30 + 20, std::numeric_limits<double>::infinity());  // of group 1
  auto const result = [&](Device const& device, char const* name) {
    PlanOptions options;
    options.kernel = name;
    auto const prepared = prepare(make_plan(p, device, options));
    Tensor y = filled(p.y, 9), workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
    ConvolutionProblem::Arguments arguments;
    arguments.x = x.data(), arguments.w = w.data(), arguments.y = y.data();
    prepared.run(arguments, workspace.data());
    return y;
  };
  Tensor const ours = result(emulated_device(), kernel),
               expected = result(this_device(Backend::reference), "");
  int infinite = 0;
  for (Index i = 0; i < ours.layout().span(); ++i) {
    double const a = load(ours.type(), ours.data(), i), b = load(expected.type(), expected.data(), i);
    ASSERT_EQ(std::isfinite(a), std::isfinite(b)) << "element " << i;
    infinite += std::isfinite(a) ? 0 : 1;
  }
  EXPECT_EQ(infinite, 9 * 16);
}

TEST(GroupWindows, RefusalsHoldTheNumbers) {
  auto const expect = [](ConvolutionProblem const& p, char const* part) {
    std::string const sentence = plan::group_windows(p, emulated_device(), {}).refusal;
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  };
  expect(problem(forward, {8, 16, 4}, 1, 8, 8), "groups of 8 summed channels and 16 of the result");
  expect(problem(forward, {16, 12, 4}, 1, 8, 8), "multiples of 16 and of 8");
  expect(
      problem(forward, {16, 64, 4}, 1, 8, 8),
      "64 channels of the result per group: the 4 groups in 64 channels of the image have 256 columns of products; at most 128");
  expect(problem(data, {16, 16, 4}, 1, 8, 8, 2), "a data gradient with a stride of 2; supported: 1");
  expect(problem(forward, {16, 16, 4}, 1, 8, 8, 3), "a stride of 3; supported: 1 and 2");
  expect(problem(forward, {16, 16, 4}, 1, 8, 8, 1, DataType::f32), "not f32 and f32");
  auto p = problem(forward, {16, 16, 4}, 1, 8, 8);
  p.w = describe(DataType::f16, image_layout(TensorFormat::nchw, 64, 16, 3, 3));
  expect(p, "w: its channels are 9 elements apart");
}

TEST(GroupWindows, ThePlannerTakesItForResNeXtAndItCompilesWithoutSpills) {
  Device h200 = emulated_device();
  h200.backend = Backend::cuda;
  for (auto const& [channels, size] : {std::pair{512, 14}, {1024, 7}})
    for (ConvolutionDirection const direction : {forward, data}) {
      auto const plan =
          make_plan(problem(direction, {channels / 32, channels / 32, 32}, 64, size, size), h200);
      EXPECT_EQ(plan.kernel, kernel) << channels << " channels";
      if (jit::nvrtc_available()) {
        EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0);
      }
    }
}

}  // namespace
}  // namespace cosmati
