// The C interface on a GPU, with the fake driver: a run only enqueues work on the given stream and can be
// captured; find measures with events.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "cosmati.h"
#include "cosmati/gemm/arguments.h"
#include "cosmati/ops/gemm.h"
#include "src/backend/cuda/driver/resources.h"
#include "src/backend/cuda/executor.h"
#include "src/jit/cache.h"
#include "src/jit/nvrtc.h"
#include "src/plan/gemm/program/program.h"
#include "tests/cuda/fake_libcuda.h"

namespace cosmati {
namespace {

[[maybe_unused]] int const chosen =
    setenv("COSMATI_LIBCUDA", COSMATI_FAKE_LIBCUDA, 1) + setenv("COSMATI_CACHE", COSMATI_TEST_CACHE, 1);

void multiply(fake::Launch const& launch) {
  auto const& params = launch.as<MatrixGemmParameters<NoEpilogueArguments>>();
  auto const at = [](MatrixArguments const& matrix, Index row, Index column) -> float& {
    return static_cast<float*>(matrix.data)[row * matrix.row_stride + column * matrix.column_stride];
  };
  for (Index m = 0; m < params.m; ++m)
    for (Index n = 0; n < params.n; ++n) {
      float sum = 0;
      for (Index k = 0; k < params.k; ++k) sum += at(params.a, m, k) * at(params.b, n, k);
      at(params.d, m, n) = sum;
    }
}

void multiply_slowly(fake::Launch const& launch) {
  fake::take_milliseconds(20);
  multiply(launch);
}

class CApiOnGpu : public ::testing::Test {
 protected:
  static constexpr Index m = 12, n = 8, k = 4096;  // a sum this long is split, with counters in the workspace

  void SetUp() override {
    if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
    fake::reset();
    ASSERT_EQ(cosmati_create("cuda:0", nullptr, &handle_), COSMATI_SUCCESS) << cosmati_last_error();
    cosmati_gemm gemm = cosmati_default_gemm();
    gemm.a = cosmati_matrix(COSMATI_F32, m, k, k, 1);
    gemm.b = cosmati_matrix(COSMATI_F32, k, n, n, 1);
    gemm.d = cosmati_matrix(COSMATI_F32, m, n, n, 1);
    ASSERT_EQ(cosmati_gemm_problem(&gemm, &problem_), COSMATI_SUCCESS) << cosmati_last_error();
  }
  void TearDown() override {
    cosmati_problem_destroy(problem_);
    cosmati_destroy(handle_);
  }

  // Registers `kernel` under the name of the kernel that would be composed for the problem; returns false if
  // that kernel rejects the problem.
  static bool stand_in(std::string const& name, fake::Kernel kernel) {
    GemmProblem problem;
    problem.a = describe(DataType::f32, Shape(1, m, k));
    problem.b = describe(DataType::f32, Shape(1, k, n));
    problem.d = describe(DataType::f32, Shape(1, m, n));
    for (TensorDescription* tensor : {&problem.a, &problem.b, &problem.d})
      tensor->layout.stride[0] = tensor->layout.span();
    PlanOptions options;
    options.kernel = name;
    try {
      auto const plan = make_plan(problem, this_device(Backend::cuda, 1), options);
      jit::Source const source = cuda::kernel_sources(plan::program_of(plan), plan.device.gpu).front();
      fake::set_kernel(jit::kernel_cache().get(source).lowered_name, kernel);
      return true;
    } catch (Error const&) {
      return false;
    }
  }

  cosmati_memory_t memory(std::size_t numbers, float value) {
    cosmati_memory_t result = nullptr;
    std::vector<float> const data(numbers, value);
    EXPECT_EQ(cosmati_allocate(handle_, numbers * sizeof(float), &result), COSMATI_SUCCESS);
    EXPECT_EQ(cosmati_upload(result, 0, data.data(), numbers * sizeof(float)), COSMATI_SUCCESS);
    return result;
  }
  static float first_of(cosmati_memory_t data) {
    float number = 0;
    EXPECT_EQ(cosmati_download(data, 0, &number, sizeof number), COSMATI_SUCCESS);
    return number;
  }

  cosmati_handle_t handle_ = nullptr;
  cosmati_problem_t problem_ = nullptr;
};

TEST_F(CApiOnGpu, ARunIsCapturedAndAllocatesNothing) {
  ASSERT_TRUE(stand_in("", multiply));
  cosmati_plan_t plan = nullptr;
  ASSERT_EQ(cosmati_make_plan(handle_, problem_, nullptr, &plan), COSMATI_SUCCESS) << cosmati_last_error();
  std::size_t const bytes = cosmati_plan_workspace(plan);
  EXPECT_GT(bytes, 0U);
  cosmati_memory_t const a = memory(m * k, 1), b = memory(k * n, 2), d = memory(m * n, -1);
  cosmati_memory_t const workspace = memory(bytes / sizeof(float) + 1, 7);
  cosmati_argument const arguments[] = {cosmati_data("a", cosmati_address(a)),
                                        cosmati_data("b", cosmati_address(b)),
                                        cosmati_data("d", cosmati_address(d))};
  {
    cuda::OwnedStream const stream(0);
    int const allocations = fake::allocations(), handles = fake::handles();
    fake::set_current_context(nullptr);
    cuda::Capture capture(stream);
    for (char const* call : {"cuMemAlloc_v2", "cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize",
                             "cuMemHostAlloc", "cuModuleLoadData"})
      fake::fail_next(call, 1);  // `call` fails the next time
    EXPECT_EQ(cosmati_run(plan, arguments, 3, cosmati_address(workspace), bytes, static_cast<Stream>(stream)),
              COSMATI_SUCCESS)
        << cosmati_last_error();
    EXPECT_EQ(fake::current_context(), nullptr) << "the caller's context is as it was";
    EXPECT_EQ(fake::allocations(), allocations);
    EXPECT_EQ(fake::handles(), handles);
    EXPECT_EQ(fake::launches().size(), 0U) << "recorded, not done";
    fake::reset();
    ASSERT_TRUE(stand_in("", multiply));
    cuda::Graph const graph = capture.finish();
    graph.launch(stream);
    EXPECT_EQ(fake::launches().size(), 1U);
    EXPECT_EQ(first_of(d), 2 * k);
    std::vector<float> const threes(m * k, 3);
    ASSERT_EQ(cosmati_upload(a, 0, threes.data(), threes.size() * sizeof(float)), COSMATI_SUCCESS);
    graph.launch(stream);
    EXPECT_EQ(first_of(d), 6 * k);
    EXPECT_EQ(cosmati_wait(handle_, static_cast<Stream>(stream)), COSMATI_SUCCESS);
  }
  fake::fail_next("cuLaunchKernel", 700);
  fake::fail_next("cuLaunchKernelEx", 700);
  EXPECT_EQ(cosmati_run(plan, arguments, 3, cosmati_address(workspace), bytes, nullptr), COSMATI_SYSTEM);
  EXPECT_NE(std::string(cosmati_last_error()).find("cuLaunchKernel"), std::string::npos)
      << cosmati_last_error();
  for (cosmati_memory_t const one : {a, b, d, workspace}) cosmati_free(one);
  cosmati_plan_destroy(plan);
}

TEST_F(CApiOnGpu, ACachedKernelThatTheDriverDoesNotSupportIsCompiledAgain) {
  ASSERT_TRUE(stand_in("", multiply));
  for (unsigned const result : {200U, 209U, 218U, 222U, 2U}) {
    fake::fail_next("cuModuleLoadData", result);
    cosmati_plan_t plan = nullptr;
    cosmati_status const status = cosmati_make_plan(handle_, problem_, nullptr, &plan);
    if (result != 2)
      EXPECT_EQ(status, COSMATI_SUCCESS) << result << ": " << cosmati_last_error();
    else  // out of memory
      EXPECT_NE(status, COSMATI_SUCCESS);
    cosmati_plan_destroy(plan);
  }
}

TEST_F(CApiOnGpu, FindTakesTheFastest) {
  for (char const* other : {"double_buffered", "gemv"}) ASSERT_TRUE(stand_in(other, multiply_slowly));
  ASSERT_TRUE(stand_in("multistage", multiply));
  int const allocations = fake::allocations();
  cosmati_plan_t plan = nullptr;
  ASSERT_EQ(cosmati_find_plan(handle_, problem_, "seconds=0.001", &plan), COSMATI_SUCCESS)
      << cosmati_last_error();
  EXPECT_STREQ(cosmati_plan_kernel(plan), "multistage");
  EXPECT_EQ(fake::allocations(), allocations) << "what find allocated is given back";
  // Calls are timed as CUDA graphs, or as single calls if one cannot be captured.
  cosmati_plan_t other = nullptr;
  fake::fail_next("cuGraphLaunch", 700);
  EXPECT_EQ(cosmati_find_plan(handle_, problem_, "seconds=0.001", &other), COSMATI_SYSTEM);
  EXPECT_NE(std::string(cosmati_last_error()).find("cuGraphLaunch"), std::string::npos)
      << cosmati_last_error();
  fake::fail_next("cuGraphInstantiateWithFlags", 1);
  ASSERT_EQ(cosmati_find_plan(handle_, problem_, "seconds=0.001", &other), COSMATI_SUCCESS)
      << cosmati_last_error();
  EXPECT_STREQ(cosmati_plan_kernel(other), "multistage");
  cosmati_plan_destroy(other);
  std::vector<double> times;
  for (std::size_t i = 0; i < cosmati_plan_candidates(plan); ++i) {
    cosmati_candidate candidate;
    candidate.size = sizeof candidate;
    ASSERT_EQ(cosmati_plan_candidate(plan, i, &candidate), COSMATI_SUCCESS);
    if (candidate.measured_seconds > 0) times.push_back(candidate.measured_seconds);
  }
  ASSERT_EQ(times.size(), 3U);
  EXPECT_LT(times[0], 0.003);
  EXPECT_GT(times[1], 0.02);
  EXPECT_GT(times[2], 0.02);
  cosmati_plan_destroy(plan);
}

}  // namespace
}  // namespace cosmati
