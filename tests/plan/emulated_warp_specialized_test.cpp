// The kernel warp_specialized as a candidate of the backend emulator: results, repacked operands, split-K and
// rejections.
#include <gtest/gtest.h>

#include "src/plan/gemm/program/program.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::product;

Device emulator(char const* gpu = "h200") {
  Device device = this_device(Backend::emulator);
  device.gpu = describe_gpu(gpu);
  return device;
}

Plan<GemmProblem> plan_of(GemmProblem const& problem, std::string const& policy = "",
                          std::string const& kernel = "warp_specialized") {
  PlanOptions options;
  options.kernel = kernel;
  options.policy = policy;
  return make_plan(problem, emulator(), options);
}

std::string refusal_of(GemmProblem const& problem, Device const& device = emulator()) {
  return entry_of(make_plan(problem, device).considered, "warp_specialized").refusal;
}

Tensor filled(TensorDescription const& description, Index seed) {
  Tensor tensor(description);
  for (Index i = 0; i < tensor.layout().span(); ++i)
    store(description.type, tensor.data(), i, static_cast<double>(((i + seed) * 2654435761 >> 9) % 4));
  return tensor;
}

void run(Plan<GemmProblem> const& plan, Tensor const& a, Tensor const& b, Tensor& d) {
  auto const prepared = prepare(plan);
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
  for (Index i = 0; i < workspace.size(); ++i) workspace.set(i, static_cast<double>(i * 37 % 256));
  int const runs = plan.recipe.flag_bytes > 0 ? 2 : 1;  // the second run finds what the first one left
  for (int run = 0; run < runs; ++run)
    prepared.run({.a = a.data(), .b = b.data(), .d = d.data()}, workspace.data());
}

// Small integers: every sum is exact in every type.
void expect_right(GemmProblem const& problem, std::string const& policy = "",
                  std::string const& kernel = "warp_specialized") {
  Tensor const a = filled(problem.a, 1), b = filled(problem.b, 2);
  Tensor d(problem.d), expected(problem.d);
  Plan<GemmProblem> const plan = plan_of(problem, policy, kernel);
  EXPECT_EQ(plan.kernel, kernel);
  run(plan, a, b, d);
  run(make_plan(problem, this_device(Backend::reference)), a, b, expected);
  for (Index i = 0; i < d.layout().span(); ++i)
    ASSERT_EQ(load(d.type(), d.data(), i), load(d.type(), expected.data(), i))
        << plan.recipe.policy_name << ' ' << name_of(problem.a.type) << ", element " << i;
}

TEST(EmulatedWarpSpecialized, EveryTypeAndLayout) {
  struct Types {
    DataType operands, result;
  };
  for (Types const& types : {Types{DataType::bf16, DataType::f32},
                             {DataType::f16, DataType::f16},
                             {DataType::tf32, DataType::f32},
                             {DataType::s8, DataType::s32},
                             {DataType::u8, DataType::s32},
                             {DataType::e4m3, DataType::f32}})
    for (char const* letters : {"nn", "nt", "tn", "tt"}) {
      expect_right(product(types.operands, types.result, 80, 48, 64, letters));
      expect_right(product(types.operands, types.result, 71, 33, 50, letters));  // repacked first
    }
}

TEST(EmulatedWarpSpecialized, ABatchSharesAnOperand) {
  struct Types {
    DataType operands, result;
  };
  for (Types const& types : {Types{DataType::f16, DataType::f16},
                             {DataType::tf32, DataType::f32},
                             {DataType::s8, DataType::s32},
                             {DataType::f64, DataType::f64}})
    for (char const* letters : {"nn", "tn", "tt"})
      for (char const operand : {'a', 'b'}) {
        auto const batch = [&](Index m, Index n, Index k) {
          return testing::batch_sharing(operand, 3, product(types.operands, types.result, m, n, k, letters));
        };
        expect_right(batch(80, 48, 64));
        if (types.operands != DataType::f64) expect_right(batch(71, 33, 50));  // repacked first
      }
}

TEST(EmulatedWarpSpecialized, DoublesAreMultipliedByMma) {
  for (char const* letters : {"nn", "nt", "tn", "tt"}) {
    expect_right(product(DataType::f64, DataType::f64, 128, 64, 96, letters));
    expect_right(product(DataType::f64, DataType::f64, 70, 42, 50, letters));
    expect_right(product(DataType::f64, DataType::f64, 72, 136, 300, letters), "partition=stream_k");
    expect_right(product(DataType::f64, DataType::f64, 64, 32, 512, letters), "partition=split_k");
  }
  GemmProblem const odd = product(DataType::f64, DataType::f64, 71, 33, 50, "nn");
  EXPECT_EQ(refusal_of(odd),
            "operand a: leading dimension 71 is not a multiple of 2 elements (16 bytes); nearest: 72");
  GemmProblem const even = product(DataType::f64, DataType::f64, 70, 42, 50, "nn");
  for (char const* policy : {"multiply=wgmma", "epilogue=staged", "operands=threads"})
    EXPECT_THROW((void)plan_of(even, policy), Error) << policy;
  GemmProblem mixed = even;
  mixed.b.type = DataType::f32;
  EXPECT_EQ(refusal_of(mixed), "multiply mma does not support f64 and f32 with sums in f64");
}

TEST(EmulatedWarpSpecialized, ThreadsTransposeTf32) {
  for (char const* letters : {"nn", "nt"})
    for (Index const n : {Index{24}, Index{40}, Index{72}}) {
      GemmProblem const problem = product(DataType::tf32, DataType::f32, 76, n, 68, letters);
      EXPECT_TRUE(plan_of(problem, "operands=threads").recipe.b.transposed) << letters << ' ' << n;
      expect_right(problem, "operands=threads");
    }
}

TEST(EmulatedWarpSpecialized, DeepProductsAreSplit) {
  GemmProblem const deep = product(DataType::bf16, DataType::f32, 64, 32, 4096, "tn");
  EXPECT_GT(plan_of(deep).recipe.splits, 1);
  expect_right(deep);
}

TEST(EmulatedWarpSpecialized, StepsOfAllTilesAreStreamed) {
  std::string const streamed = "partition=stream_k";
  GemmProblem const nine_tiles = product(DataType::bf16, DataType::f32, 88, 136, 300, "tn");  // for 8 blocks
  expect_right(nine_tiles, streamed);
  expect_right(product(DataType::bf16, DataType::f32, 71, 33, 500, "nn"), streamed);  // repacked first
  expect_right(product(DataType::f32, DataType::f32, 20, 30, 0, "tn"), streamed, "multistage");
  expect_right(product(DataType::f32, DataType::f32, 200, 90, 77, "nt"), streamed, "multistage");
  expect_right(product(DataType::f32, DataType::f32, 20, 30, 200, "tn"), streamed, "multistage");
  GemmProblem batch = product(DataType::f32, DataType::f32, 40, 50, 60, "tt");
  for (TensorDescription* tensor : {&batch.a, &batch.b, &batch.d}) {
    tensor->layout.shape[0] = 3;
    tensor->layout.stride[0] = tensor->layout.shape[1] * tensor->layout.shape[2];
  }
  expect_right(batch, streamed, "multistage");
  EXPECT_EQ(plan_of(nine_tiles, streamed).recipe.streamed, 9);
  EXPECT_EQ(plan_of(nine_tiles, streamed).recipe.stream_blocks, 8);
  EXPECT_THROW((void)plan_of(product(DataType::f16, DataType::f32, 64, 64, 64, "tn"), streamed), Error);
}

TEST(EmulatedWarpSpecialized, PartsAreAddedByAnotherKernel) {
  std::string const parallel = "partition=split_k_parallel";
  GemmProblem const deep = product(DataType::bf16, DataType::f32, 70, 33, 1500, "tn");  // rows of 33 floats
  EXPECT_EQ(plan_of(deep, parallel).recipe.splits, 24);                                 // one step each
  expect_right(deep, parallel);
  GemmProblem few_rows = product(DataType::bf16, DataType::bf16, 5, 40, 9000, "nn");  // repacked first
  few_rows.d.layout = row_major({1, 5, 40});
  EXPECT_EQ(plan_of(few_rows, parallel).recipe.splits, 66);  // eight groups of parts
  expect_right(few_rows, parallel);
  GemmProblem batch = product(DataType::bf16, DataType::f32, 40, 50, 264, "tt");
  for (TensorDescription* tensor : {&batch.a, &batch.b, &batch.d}) {
    tensor->layout.shape[0] = 3;
    tensor->layout.stride[0] = tensor->layout.shape[1] * tensor->layout.shape[2];
  }
  expect_right(batch, parallel);
}

// Tensor cores may add all steps only if the problem permits it.
TEST(EmulatedWarpSpecialized, SumsOfEightBitFloatsArePromotedUnlessFast) {
  for (DataType const type : {DataType::e4m3, DataType::e5m2}) {
    GemmProblem problem = product(type, DataType::f32, 80, 48, 400, "tn");
    EXPECT_FALSE(plan_of(problem).recipe.policy.fast_sums);
    problem.compute = ComputeMode::fast_accumulation;
    EXPECT_TRUE(plan_of(problem).recipe.policy.fast_sums);
    expect_right(problem);
    for (auto const& [given, traits] : {std::pair{ComputeMode::exact, false}, {problem.compute, true}}) {
      problem.compute = given;
      auto const plan = make_plan(problem, testing::gpu_device("h200"));
      auto const program = plan::program_of(plan);
      EXPECT_EQ(program.kernels[program.main].traits.find(".fast_sums = true") != std::string::npos, traits)
          << name_of(given);
    }
  }
  GemmProblem halves = product(DataType::f16, DataType::f16, 64, 64, 64, "tn");
  halves.compute = ComputeMode::fast_accumulation;
  try {
    (void)plan_of(halves);
    FAIL() << "accepted";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("fast_accumulation applies to 8-bit floats; a and b are f16"),
              std::string::npos)
        << error.what();
  }
}

TEST(EmulatedWarpSpecialized, RefusalsGiveTheReason) {
  EXPECT_EQ(refusal_of(product(DataType::bf16, DataType::bf16, 64, 64, 64, "tn")), "");
  EXPECT_EQ(refusal_of(product(DataType::f32, DataType::f32, 64, 64, 64, "tn")),
            "multiply wgmma does not support f32 and f32 with sums in f32");
  EXPECT_EQ(refusal_of(product(DataType::bf16, DataType::bf16, 64, 64, 64, "tn"), emulator("a100")),
            "wgmma needs compute capability 9.0; " + describe_gpu("a100").name + " has 8.0");
  GemmProblem pointers = product(DataType::bf16, DataType::bf16, 64, 64, 64, "tn");
  pointers.by_pointers = true;
  EXPECT_EQ(refusal_of(pointers), "");
  pointers.a.alignment = 2;
  EXPECT_NE(refusal_of(pointers), "");
}

}  // namespace
}  // namespace cosmati
