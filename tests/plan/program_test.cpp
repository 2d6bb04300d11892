// Programs of convolutions: their kernels are in the emulator's catalogue, their workspace equals the plan's,
// and a launch's arguments depend only on the run's pointers.
#include <gtest/gtest.h>

#include <optional>

#include "src/backend/emulator/catalogue.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/gemm/program/program.h"
#include "tests/plan/convolution_cases.h"
#include "tests/plan/gemm_problem.h"
#include "tests/sanitized.h"

namespace cosmati {
namespace {

struct Case {
  std::string kernel;
  ConvolutionProblem problem;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  test::Sample sample(5);
  using enum ConvolutionDirection;
  for (TensorFormat const format : formats)
    for (DataType const type : {DataType::f32, DataType::f16, DataType::f64, DataType::s32})
      for (ConvolutionDirection const direction : {forward, data, filter})
        for (Index const stride : {1, 2})
          for (Index const taps : {1, 3, 4}) {
            if (sample.skips()) continue;
            Geometry geometry, by_channel;
            geometry.stride[0] = geometry.stride[1] = stride;
            geometry.r = geometry.s = taps;
            by_channel = geometry;
            by_channel.c = by_channel.k = by_channel.groups = 8;
            for (char const* const kernel : {"direct_tiled", "direct", "implicit_gemm", "unroll_gemm",
                                             "winograd", "fft", "warp_specialized"})
              list.push_back({kernel, problem_of(direction, type, type, format, geometry)});
            for (char const* const kernel : {"depthwise", "depthwise_rows", "fft"})
              list.push_back({kernel, problem_of(direction, type, type, format, by_channel)});
            if (direction == data && stride == 2)
              list.push_back({"dgrad_small_c", problem_of(direction, type, type, format, geometry)});
            geometry.c = 8, geometry.k = 16;
            geometry.pad_begin[1] = geometry.pad_end[1] = taps / 2;
            if (direction == filter)
              list.push_back({"wgrad_taps", problem_of(direction, type, type, format, geometry)});
          }
  return list;
}

// Not all kernels support all problems.
std::optional<Plan<ConvolutionProblem>> plan_of(Case const& one, Backend backend) {
  Device device = emulated_device();
  device.backend = backend;
  PlanOptions options;
  options.kernel = one.kernel;
  try {
    return make_plan(one.problem, device, options);
  } catch (Error const&) {
    return {};
  }
}

TEST(Programs, TheEmulatorHasTheirKernels) {
  int found = 0;
  for (Case const& one : cases())
    if (auto const plan = plan_of(one, Backend::emulator)) {
      program::Program const program = plan::program_of(*plan);
      for (program::KernelSpec const& kernel : program.kernels) {
        EXPECT_NE(emulator::catalogue().kernel(kernel.key()), nullptr) << kernel.key();
        ++found;
      }
    }
  EXPECT_GT(found, test::sanitized ? 200 : 1000);
  EXPECT_EQ(emulator::catalogue().kernel("depthwise_kernel<DepthwiseTraits<f32>>"), nullptr);
}

TEST(Programs, TheirWorkspaceIsThePlans) {
  for (Backend const backend : {Backend::cuda, Backend::emulator})
    for (Case const& one : cases())
      if (auto const plan = plan_of(one, backend)) {
        program::Workspace const workspace = plan::program_of(*plan).workspace;
        EXPECT_EQ(workspace.bytes, plan->workspace_bytes) << one.kernel;
        std::size_t end = 0;
        for (auto const& slot : workspace.slots) {
          EXPECT_GE(slot.offset, end) << slot.name;
          EXPECT_LT(slot.offset, end + 256) << slot.name;  // alignment of copies
          end = slot.offset + slot.bytes;
        }
        EXPECT_EQ(end, workspace.bytes);
      }
}

// The caller provides `room` bytes for parameters, `bytes` of which are passed to the GPU.
TEST(Programs, ParametersFitIntoALaunch) {
  for (Case const& one : cases())
    if (auto const plan = plan_of(one, Backend::cuda)) {
      program::Program const program = plan::program_of(*plan);
      ASSERT_FALSE(program.steps.empty());
      for (program::Step const& step : program.steps) {
        if (!std::holds_alternative<program::Launch>(step)) continue;
        auto const& launch = std::get<program::Launch>(step);
        EXPECT_LE(launch.bytes, launch.room);
        EXPECT_LE(launch.room, program::max_room);
        EXPECT_LE(launch.grid.z, 65535);
        ASSERT_LT(launch.kernel, program.kernels.size());
        EXPECT_GT(program.kernels[launch.kernel].threads, 0u);
      }
    }
}

TEST(Programs, GroupsBeyondAGridAreMoreLaunches) {
  Geometry geometry;
  geometry.n = 1, geometry.h = geometry.w = 3;
  geometry.c = geometry.k = geometry.groups = 65536;
  auto const plan = plan_of({"direct_tiled", problem_of(ConvolutionDirection::forward, DataType::f32,
                                                        DataType::f32, formats[0], geometry)},
                            Backend::cuda);
  program::Program const program = plan::program_of(plan.value());
  ASSERT_EQ(program.steps.size(), 2u);
  auto const launch = [&](Index number) {
    return std::get<program::Launch>(program.steps[static_cast<std::size_t>(number)]);
  };
  EXPECT_EQ(launch(0).grid.z, 65535);
  EXPECT_EQ(launch(1).grid.z, 1);
  alignas(128) std::byte parameters[program::max_room];
  for (Index const number : {0, 1}) {
    launch(number).fill({}, parameters);
    using Parameters = DirectTiledParameters<NoEpilogueArguments, DigitArguments>;
    EXPECT_EQ(reinterpret_cast<Parameters const*>(parameters)->schedule.first_group, number * 65535);
  }
}

// Products of every main loop and type; the third is a group, and the fourth a batch by pointers.
template <class Check>
int for_products(Backend backend, Check const& check) {
  int found = 0;
  Device device = backend == Backend::cuda ? testing::gpu_device("h200") : emulated_device();
  device.backend = backend;
  auto const planned = [&](auto const& problem, PlanOptions const& options) {
    try {
      auto const plan = make_plan(problem, device, options);
      if (plan.kernel != options.kernel) return;
      check(plan);
      ++found;
    } catch (Error const&) {
    }
  };
  for (DataType const type : {DataType::f32, DataType::f64, DataType::f16, DataType::bf16, DataType::tf32,
                              DataType::s8, DataType::e4m3, DataType::s32})
    for (char const* const layout : {"nn", "tn", "nt", "tt"})
      for (Index const k : {130, 1024})
        for (char const* const kernel : {"warp_specialized", "multistage", "double_buffered"}) {
          PlanOptions options;
          options.kernel = kernel;
          DataType const result = accumulator_type(type, type);
          GemmProblem problem = testing::product(type, result, 64, 72, k, layout, "alpha * acc + bias[n]");
          planned(problem, options);
          planned(GroupedGemmProblem{{problem, testing::product(type, result, 8, 16, k, layout,
                                                                "alpha * acc + bias[n]")}},
                  options);
          for (TensorDescription* tensor : {&problem.a, &problem.b, &problem.d}) tensor->layout.shape[0] = 3;
          problem.by_pointers = true;
          planned(problem, options);
        }
  return found;
}

TEST(ProductPrograms, TheEmulatorHasTheirKernels) {
  EXPECT_GT(for_products(Backend::emulator,
                         [](auto const& plan) {
                           for (program::KernelSpec const& kernel : plan::program_of(plan).kernels)
                             EXPECT_NE(emulator::catalogue().kernel(kernel.key()), nullptr) << kernel.key();
                         }),
            200);
}

TEST(ProductPrograms, TheirWorkspaceIsThePlans) {
  for (Backend const backend : {Backend::cuda, Backend::emulator})
    EXPECT_GT(for_products(backend,
                           [](auto const& plan) {
                             program::Workspace const workspace = plan::program_of(plan).workspace;
                             EXPECT_EQ(workspace.bytes, plan.workspace_bytes) << plan.kernel;
                             std::size_t end = 0;
                             for (auto const& slot : workspace.slots) {
                               EXPECT_GE(slot.offset, end) << slot.name;
                               end = slot.offset + slot.bytes;
                             }
                           }),
              200);
}

}  // namespace
}  // namespace cosmati
