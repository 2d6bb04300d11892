// Tensor maps of planned convolutions against the limits of the driver, without a GPU: every launch of a plan
// fills its parameters with addresses that have only the promised alignment.
#include <gtest/gtest.h>

#include <array>
#include <type_traits>

#include "cosmati/ops/error.h"
#include "src/program/tensor_map_limits.h"
#include "tests/plan/convolution_cases.h"
#include "tests/plan/gemm_problem.h"
#include "tests/sanitized.h"

namespace cosmati {
namespace {

int encoded = 0;
program::TiledTensor last_tiled;

template <class Tensor>
arch::TensorMap count(Tensor const& tensor) {
  ++encoded;
  if constexpr (std::is_same_v<Tensor, program::TiledTensor>) last_tiled = tensor;
  return {};
}

// Returns the number of maps; throws Error if one exceeds a limit.
int maps_of(Plan<ConvolutionProblem> const& plan) {
  encoded = 0;
  program::Program const program = plan::program_of(plan);
  program::Run run;
  auto const at = [](std::size_t address) { return reinterpret_cast<void*>(address); };
  TensorDescription const* const tensors[] = {&plan.problem.x, &plan.problem.w, &plan.problem.y};
  for (std::size_t i = 0; i < 4; ++i)
    run.tensors[i] =
        at((i + 1) * 4096 + static_cast<std::size_t>(tensors[std::min<std::size_t>(i, 2)]->alignment));
  run.workspace = static_cast<std::byte*>(at(1 << 20));
  run.encode = {&count<program::TiledTensor>, &count<program::WindowedTensor>};
  alignas(128) static std::byte parameters[program::max_room];
  for (program::Step const& step : program.steps)
    if (auto const* const launch = std::get_if<program::Launch>(&step)) launch->fill(run, parameters);
  return encoded;
}

Plan<ConvolutionProblem> plan_of(ConvolutionProblem const& problem, std::string const& kernel) {
  PlanOptions options;
  options.kernel = kernel;
  return make_plan(problem, testing::gpu_device("h200"), options);
}

// The map of a filter gradient that is stored by taps, 40 filters by 3x3 taps of 72 channels: of f16, 144
// bytes per tap; and one with gaps between filters.
TEST(TensorMapLimits, MapsOfTapsHaveTheChannelsOfDw) {
  auto const expect_map = [](Index taps, Index gap, std::array<Index, 3> const& stride) {
    Geometry g;
    g.c = 72, g.k = 40, g.h = g.w = 20, g.r = g.s = taps;
    auto p = problem_of(ConvolutionDirection::filter, DataType::f16, DataType::f16, TensorFormat::nhwc, g);
    p.w.layout.stride[0] += gap;
    auto const plan = plan_of(p, "warp_specialized");
    EXPECT_TRUE(std::get<PackRecipe>(plan.recipe.own).by_taps) << plan.chosen().recipe;
    EXPECT_EQ(std::get<PackRecipe>(plan.recipe.own).of_result, 0);
    EXPECT_EQ(maps_of(plan), 3);
    Index const extent[] = {72, 40, taps * taps};
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(last_tiled.extent[i], extent[i]) << i;
      EXPECT_EQ(i == 0 ? 0 : last_tiled.stride[i], stride[static_cast<std::size_t>(i)]) << i;
    }
    EXPECT_EQ(last_tiled.box[1], 16);
    EXPECT_EQ(last_tiled.box[2], 1);
    EXPECT_EQ(64 % last_tiled.box[0], 0);
  };
  expect_map(3, 0, {0, 9 * 144, 144});
  expect_map(3, 8, {0, 9 * 144 + 16, 144});
}

TEST(TensorMapLimits, MapsOfRandomWindowsAreAccepted) {
  using enum ConvolutionDirection;
  int maps = 0;
  test::Sample sample(5);
  for (char const* const kernel : {"warp_specialized", "wgrad_taps"})
    for (TensorFormat const format : formats)
      for (DataType const type : {DataType::f16, DataType::tf32})
        for (ConvolutionDirection const direction : {forward, data, filter})
          for (Index const channels : {3, 24, 64})
            for (Index const filters : {3, 72})
              for (Index const taps : {1, 3, 4})
                for (Index const stride : {1, 2, 4}) {
                  if (sample.skips()) continue;
                  Geometry g;
                  g.c = channels, g.k = filters, g.h = 21, g.w = 18, g.r = taps, g.s = (taps + 1) / 2;
                  g.stride[0] = g.stride[1] = stride;
                  g.pad_begin[0] = g.pad_end[1] = taps / 2;
                  ConvolutionProblem p = problem_of(direction, type, type, format, g);
                  for (TensorDescription* tensor : {&p.x, &p.w, &p.y}) tensor->alignment = 16;
                  try {
                    Plan<ConvolutionProblem> const plan = plan_of(p, kernel);
                    EXPECT_NO_THROW(maps += maps_of(plan)) << kernel << to_string(p.x) << to_string(p.w);
                  } catch (Error const&) {  // not all kernels support all problems
                  }
                }
  EXPECT_GT(maps, test::sanitized ? 100 : 500);
}

// Patches of 16 x 16 pixels of 3 channels: every phase of the data gradient has one tap, whose address is a
// multiple of 6 bytes.
TEST(TensorMapLimits, TapsOfAPhaseBeginAtMultiplesOf16Bytes) {
  Geometry g;
  g.c = 3, g.k = 768, g.h = g.w = 224, g.r = g.s = g.stride[0] = g.stride[1] = 16;
  auto const problem =
      problem_of(ConvolutionDirection::data, DataType::f16, DataType::f16, TensorFormat::nhwc, g);
  Plan<ConvolutionProblem> const plan = plan_of(problem, "warp_specialized");
  EXPECT_TRUE(std::get<PackRecipe>(plan.recipe.own).other);
  EXPECT_GT(maps_of(plan), 0);
}

TEST(TensorMapLimits, EveryEncoderChecksThem) {
  program::TiledTensor tensor{
      .address = reinterpret_cast<void*>(std::size_t{4102}), .rank = 1, .element_bytes = 2};
  tensor.extent[0] = 64, tensor.box[0] = 8;
  program::TensorMapEncoder const encode{&count<program::TiledTensor>, &count<program::WindowedTensor>};
  EXPECT_THROW(encode(tensor), Error);
  tensor.address = reinterpret_cast<void*>(std::size_t{4096});
  EXPECT_NO_THROW(encode(tensor));
  tensor.rank = 3;
  for (int i : {1, 2}) tensor.extent[i] = 3, tensor.box[i] = 1, tensor.stride[i] = 128;
  tensor.stride[2] = 0;  // the same matrix three times
  EXPECT_EQ(program::map_violation(tensor), "");
  tensor.stride[2] = 8;
  EXPECT_EQ(program::map_violation(tensor),
            "with a stride of 8 bytes of dimension 2; valid values: multiples of 16 from 0 to 2^40 - 16");
  tensor.stride[2] = -16;
  EXPECT_NE(program::map_violation(tensor), "");
  tensor.stride[1] = 0, tensor.stride[2] = 128;
  EXPECT_EQ(program::map_violation(tensor),
            "with a stride of 0 bytes of dimension 1; valid values: multiples of 16 from 16 to 2^40 - 16");
  program::WindowedTensor windows{
      .address = tensor.address, .element_bytes = 2, .channels = 8, .windows = 64};
  for (int i = 0; i < 4; ++i) windows.extent[i] = 8, windows.stride[i] = 16 << i;
  EXPECT_EQ(program::map_violation(windows), "");
  windows.step[1] = 9;
  EXPECT_EQ(program::map_violation(windows), "with a step of 9 of rows; valid values: 1 to 8");
}

}  // namespace
}  // namespace cosmati
