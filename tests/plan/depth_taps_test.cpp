// Convolutions of volumes on the cpu and the emulator against the reference, and what rejects them.
#include "src/plan/conv/nested/depth_taps.h"

#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/gemm.h"
#include "tests/plan/convolution_cases.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

struct Volume {
  Geometry plane;
  Index d = 7, t = 3;
  ConvolutionProblem::Depth depth = {};
};

// (n, c, d, h, w) in the memory order `format`.
Layout volume_layout(TensorFormat format, Shape const& s) {
  switch (format) {
    case TensorFormat::nhwc: return row_major({s[0], s[2], s[3], s[4], s[1]}).permuted(0, 4, 1, 2, 3);
    case TensorFormat::chwn: return row_major({s[1], s[2], s[3], s[4], s[0]}).permuted(4, 0, 1, 2, 3);
    case TensorFormat::nchw: break;
  }
  return row_major(s);
}

ConvolutionProblem volume_problem(ConvolutionDirection direction, DataType type, DataType result,
                                  TensorFormat format, Volume const& v) {
  ConvolutionProblem p = problem_of(direction, type, result, format, v.plane);
  p.depth = v.depth;
  Index const o =
      convolution_extent(v.d, v.t, v.depth.stride, v.depth.pad_begin, v.depth.pad_end, v.depth.dilation);
  auto const deepened = [&](TensorDescription& tensor, Index depth) {
    Shape const s(tensor.extent(0), tensor.extent(1), depth, tensor.extent(2), tensor.extent(3));
    tensor = describe(tensor.type, volume_layout(format, s));
  };
  deepened(p.x, v.d), deepened(p.w, v.t), deepened(p.y, o);
  if (direction == ConvolutionDirection::filter) p.db = describe(result, Shape(v.plane.k));
  return p;
}

std::vector<Volume> volumes() {
  Volume plain, padded, strided, sparse, spatial;
  plain.plane.h = plain.plane.w = 5;
  padded.plane.groups = 2, padded.plane.n = 3, padded.plane.h = 6, padded.d = 4;
  padded.depth = {1, 3, 2, 1};  // the first plane reaches no plane of x
  strided.plane.stride[0] = 2, strided.plane.pad_begin[1] = 1, strided.depth = {2, 1, 2, 2}, strided.t = 2;
  sparse.t = 1, sparse.depth.stride = 3, sparse.d = 8, sparse.plane.h = 5;  // planes of dx without a tap
  spatial.t = 1, spatial.plane.pad_begin[0] = spatial.plane.pad_end[0] = 1;
  return {plain, padded, strided, sparse, spatial};
}

TEST(DepthTaps, EveryDirectionLayoutAndGeometry) {
  for (Device const& device : {emulated_device(), this_device(Backend::cpu, 2)})
    for (ConvolutionDirection const direction : directions)
      for (TensorFormat const format : formats)
        for (Volume const& volume : volumes())
          for (auto const& [type, result] :
               {std::pair(DataType::f32, DataType::f32), std::pair(DataType::f16, DataType::f16)}) {
            auto const p = volume_problem(direction, type, result, format, volume);
            test::Trial trial(p, 1, test::Values::small_integers);
            EXPECT_EQ(trial.expect_close(device, {.terms = 300}, "depth_taps"), "depth_taps");
          }
}

// Arrays of an epilogue by any of the indices (n, k, o, p, q), and stores.
TEST(DepthTaps, EpiloguesOfVolumes) {
  for (Device const& device : {emulated_device(), this_device(Backend::cpu, 2)})
    for (ConvolutionDirection const direction : {ConvolutionDirection::forward, ConvolutionDirection::data}) {
      auto p = volume_problem(direction, DataType::f32, DataType::f32, TensorFormat::nhwc, volumes()[2]);
      TensorDescription const& result = direction == ConvolutionDirection::data ? p.x : p.y;
      p.epilogue.expression = epilogue::parse(
          "store(before, acc); relu(acc - bias[k]) + plane[o, n] + rest[n, k, o, p, q]", epilogue_indices(p));
      auto const named = [&](std::string const& name) {
        if (name == "bias") return describe(DataType::f32, Shape(result.extent(1)));
        if (name == "plane") return describe(DataType::f32, Shape(result.extent(2), result.extent(0)));
        return result;
      };
      for (auto const& operand : p.epilogue.expression.operands())
        p.epilogue.operands.push_back(named(operand.name));
      p.epilogue.stores = {result};
      test::Trial trial(p, 2, test::Values::small_integers);
      EXPECT_EQ(trial.expect_close(device, {.exact = true}, "depth_taps"), "depth_taps");
    }
}

TEST(DepthTaps, BiasGradientAlone) {
  ConvolutionProblem p;
  p.direction = ConvolutionDirection::bias;
  p.y = describe(DataType::f32, Shape(2, 5, 3, 4, 6));
  p.db = describe(DataType::f32, Shape(5));
  for (Device const& device : {emulated_device(), this_device(Backend::cpu, 2)})
    EXPECT_EQ(test::Trial(p, 3, test::Values::small_integers).expect_close(device, {.exact = true}),
              "depth_taps");
}

// The plans that `compile` takes apart.
TEST(DepthTaps, PlansOfItsParts) {
  auto const p = volume_problem(ConvolutionDirection::filter, DataType::f32, DataType::f32,
                                TensorFormat::nhwc, volumes()[0]);
  auto const plan = make_plan(p, emulated_device());
  EXPECT_EQ(plan::plan_of_planes(plan).value().problem.direction, ConvolutionDirection::filter);
  EXPECT_EQ(plan::plan_of_bias(plan).problem.y.extent(1), p.db.extent(0));
  ConvolutionProblem bias;
  bias.direction = ConvolutionDirection::bias;
  bias.y = p.y, bias.db = p.db;
  auto const alone = make_plan(bias, emulated_device());
  EXPECT_FALSE(plan::plan_of_planes(alone).has_value());
  EXPECT_EQ(plan::plan_of_bias(alone).problem.x.layout.rank(), 5);
}

// Rows with gaps: planes merge with neither images nor channels.
TEST(DepthTaps, AnyStrides) {
  auto p = volume_problem(ConvolutionDirection::forward, DataType::f32, DataType::f32, TensorFormat::nchw,
                          volumes()[0]);
  for (TensorDescription* tensor : {&p.x, &p.w, &p.y}) {
    Shape wider = tensor->shape();
    for (int d = 1; d < 5; ++d) wider[d] += d;
    for (int d = 0; d < 5; ++d) tensor->layout.stride[d] = row_major(wider).stride[d];
  }
  for (Device const& device : {emulated_device(), this_device(Backend::cpu, 2)})
    EXPECT_EQ(
        test::Trial(p, 4, test::Values::small_integers).expect_close(device, {.terms = 300}, "depth_taps"),
        "depth_taps");
}

TEST(DepthTaps, KernelsOfImagesRefuseVolumes) {
  auto const p = volume_problem(ConvolutionDirection::forward, DataType::f16, DataType::f16,
                                TensorFormat::nhwc, volumes()[0]);
  auto const plan = make_plan(p, emulated_device());
  EXPECT_EQ(plan.kernel, "depth_taps");
  for (Considered const& entry : plan.considered) {
    if (entry.kernel == "depth_taps") continue;
    EXPECT_EQ(entry.refusal, "supports images (N, C, H, W), not volumes (N, C, D, H, W)") << entry.kernel;
  }
  Geometry g;
  auto const images = make_plan(
      problem_of(ConvolutionDirection::forward, DataType::f16, DataType::f16, TensorFormat::nhwc, g),
      emulated_device());
  EXPECT_EQ(images.considered.back().kernel, "depth_taps");
  EXPECT_EQ(images.considered.back().refusal, "supports volumes (N, C, D, H, W), not images");
}

// The sums of f16 operands are kept in f32 between the taps.
TEST(DepthTaps, SumsBetweenTapsAreOfTheAccumulatorsType) {
  auto const p = volume_problem(ConvolutionDirection::forward, DataType::f16, DataType::f16,
                                TensorFormat::nhwc, volumes()[0]);
  Device device = this_device(Backend::emulator);
  device.gpu = describe_gpu("h200");
  auto const plan = make_plan(p, device);
  EXPECT_GE(plan.workspace_bytes, static_cast<std::size_t>(p.y.layout.size()) * 4);
  EXPECT_EQ(plan::plan_of_planes(plan).value().problem.y.type, DataType::f32);
}

}  // namespace
}  // namespace cosmati
