// Composed GEMM kernels: their text, and that the run-time compiler accepts them.
#include <gtest/gtest.h>

#include "src/backend/cuda/executor.h"
#include "src/jit/nvrtc.h"
#include "src/plan/gemm/program/program.h"
#include "tests/jit/compile_all.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

// Returns the source of the main kernel, then those of the passes that run before it.
template <class Problem>
std::vector<jit::Source> sources_of(Plan<Problem> const& plan) {
  return cuda::kernel_sources(plan::program_of(plan), plan.device.gpu);
}
template <class Problem>
void add(std::vector<jit::Source>& sources, Plan<Problem> const& plan) {
  for (jit::Source& source : sources_of(plan)) sources.push_back(std::move(source));
}

TEST(GemmSource, DescribesItself) {
  auto const plan =
      make_plan(product(DataType::f16, DataType::f32, 100, 200, 300, "tn", "relu(alpha * acc + bias[n])"),
                gpu_device("h200"));
  jit::Source const source = sources_of(plan).front();
  EXPECT_EQ(source.architecture, "sm_90a");
  EXPECT_EQ(source.label, "relu(alpha * acc + bias[n])");
  EXPECT_NE(source.text.find("GemmPolicy{.block_m = "), std::string::npos) << source.text;
  EXPECT_NE(source.text.find("StridedSource<f16, Along::k, 4>"), std::string::npos) << source.text;
  EXPECT_EQ(source.text.find("bias"), std::string::npos) << "a name of the expression reached the compiler";
  EXPECT_EQ(source.text, sources_of(plan).front().text);
}

struct Family {
  DataType type, result;
  std::optional<DataType> accumulator;
};

// Every type, all layouts in turn, full and partial tiles, with and without operands.
TEST(GemmSource, CompilesForEveryType) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << "libnvrtc cannot be opened here";
  char const* const letters[] = {"nn", "nt", "tn", "tt"};
  char const* const expressions[] = {"acc", "alpha * acc + beta * c", "gelu(acc + bias[n]) + residual[m, n]",
                                     "store(pre, acc); clamp(round(acc * s[m]), -128, 127)"};
  std::vector<jit::Source> sources;
  int turn = 0;
  for (Family const& family : {Family{DataType::f32, DataType::f32, {}},
                               {DataType::f64, DataType::f64, {}},
                               {DataType::f16, DataType::f32, {}},
                               {DataType::f16, DataType::f16, DataType::f16},
                               {DataType::bf16, DataType::bf16, {}},
                               {DataType::s8, DataType::s32, {}},
                               {DataType::u8, DataType::s8, {}},
                               {DataType::e4m3, DataType::e5m2, {}},
                               {DataType::s32, DataType::s32, {}}})
    for (Index m : {Index{512}, Index{333}}) {
      GemmProblem problem =
          product(family.type, family.result, m, 256, 128, letters[turn % 4], expressions[turn % 4]);
      problem.accumulator = family.accumulator;
      add(sources, make_plan(problem, gpu_device("h200")));
      ++turn;
    }
  add(sources,
      make_plan(product(DataType::f32, DataType::f32, 64, 64, 8192, "nt"), gpu_device("a100")));  // split-K
  // The host lays out these kernels' shared memory: for complete tiles, and for a cluster's shares of them.
  for (char const* policy :
       {"medium", "large,partition=stream_k", "deep_pair", "deep_four", "deep_eight", "192x16", "192x96",
        "64x16", "64x96_pair", "64x160_pair", "deep,partition=split_k_parallel"})
    for (char const* epilogue : {"direct", "staged"}) {
      PlanOptions options;
      options.kernel = "warp_specialized";
      options.policy = std::string(policy) + ",epilogue=" + epilogue;
      add(sources,
          make_plan(product(DataType::tf32, DataType::f32, 64, 64, 2048, "tn"), gpu_device("h200"), options));
    }
  std::size_t const transposing = sources.size();  // the kernel whose threads transpose b
  add(sources, make_plan(product(DataType::tf32, DataType::f32, 256, 64, 200704, "nt"), gpu_device("h200")));
  EXPECT_NE(sources[transposing].text.find("TransposedSource<tf32>"), std::string::npos);
  std::vector<jit::Cubin> const cubins = jit::compile_all(sources);
  for (jit::Cubin const& cubin : cubins) {
    EXPECT_GT(cubin.image.size(), 1000U);
    EXPECT_LE(cubin.registers, 255);
    EXPECT_NE(cubin.lowered_name.find("_kernel"), std::string::npos);
    EXPECT_EQ(cubin.compiler_warnings, "");
  }
  EXPECT_EQ(cubins[transposing].local_bytes, 0);
}

// The kernels for groups and for batches by pointers, and the kernels that run before them, for both
// architectures.
TEST(GemmSource, GroupsAndPointersCompile) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << "libnvrtc cannot be opened here";
  std::vector<jit::Source> sources;
  for (std::string const expression : {"acc", "relu(alpha * acc + bias[n]) + residual[m, n]"})
    for (std::string const kernel : {"warp_specialized", "multistage", "double_buffered"}) {
      PlanOptions options;
      options.kernel = kernel;
      DataType const type = kernel == "double_buffered" ? DataType::f32 : DataType::bf16;
      GroupedGemmProblem group;
      for (Index const tokens : {4096, 64, 8})
        group.members.push_back(product(type, type, 1024, tokens, 512, "tn", expression));
      auto const plan = make_plan(group, gpu_device("h200"), options);
      add(sources, plan);
      EXPECT_NE(sources.back().name_expression.find(kernel == "warp_specialized" ? "<true>" : "<false>"),
                std::string::npos);
    }
  GemmProblem batch = product(DataType::bf16, DataType::bf16, 1024, 1024, 512, "nn");
  for (TensorDescription* tensor : {&batch.a, &batch.b, &batch.d}) tensor->layout.shape[0] = 7;
  batch.by_pointers = true;
  auto const plan = make_plan(batch, gpu_device("h200"));
  EXPECT_EQ(plan.kernel, "warp_specialized");
  EXPECT_EQ(plan.workspace_bytes, 0u);
  add(sources, plan);
  EXPECT_NE(sources_of(plan).front().text.find("TensorDestination<bf16, Along::k, AddressedTensors>"),
            std::string::npos);
  Device const a100 = gpu_device("a100");
  GroupedGemmProblem group{{product(DataType::f32, DataType::f32, 64, 64, 64, "nt")}};
  auto const older = make_plan(group, a100);
  add(sources, older);
  for (jit::Cubin const& cubin : jit::compile_all(sources)) {
    EXPECT_EQ(cubin.local_bytes, 0) << cubin.lowered_name;
    EXPECT_EQ(cubin.compiler_warnings, "");
  }
}

}  // namespace
}  // namespace cosmati
