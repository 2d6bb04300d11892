// The choice of a GEMM kernel, for GPUs that are not installed.
#include <gtest/gtest.h>

#include <array>

#include "src/plan/gemm/model.h"
#include "src/plan/gemm/policies.h"
#include "tests/plan/gemm_problem.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::matrix;
using testing::product;

TEST(GemmChoice, ResultsWithContiguousColumnsAreComputedTransposed) {
  auto const plan = make_plan(product(DataType::f32, DataType::f32, 256, 512, 64, "nt"), gpu_device("h200"));
  EXPECT_TRUE(plan.recipe.swapped);
  EXPECT_EQ(plan.recipe.a, (OperandAccess{Along::mn, 4}));  // b (k, n), row-major
  EXPECT_EQ(plan.recipe.b, (OperandAccess{Along::mn, 4}));
  EXPECT_EQ(plan.recipe.result_width, 4);
  EXPECT_TRUE(plan.recipe.policy.full_tiles);
}

TEST(GemmChoice, WidthsFollowFromWhatTheProblemGuarantees) {
  struct Case {
    Index leading;
    int alignment, width;
  };
  for (Case const& c : {Case{64, 16, 4}, {66, 16, 2}, {65, 16, 1}, {64, 8, 2}, {64, 4, 1}, {64, 256, 4}}) {
    GemmProblem problem = product(DataType::f32, DataType::f32, 64, 64, 50, "tn");
    problem.a.layout.stride[1] = c.leading;
    problem.a.alignment = c.alignment;
    auto const form = plan::canonical(problem);
    EXPECT_EQ(plan::access_of(form.b), (OperandAccess{Along::k, c.width})) << c.leading << ' ' << c.alignment;
  }
  GemmProblem batched = product(DataType::f16, DataType::f16, 64, 64, 64, "tn");
  for (TensorDescription* tensor : {&batched.a, &batched.b, &batched.d}) {
    tensor->layout.shape[0] = 2;
    tensor->layout.stride[0] = 64 * 64 + 2;
  }
  EXPECT_EQ(plan::access_of(plan::canonical(batched).a).width, 2);
}

TEST(GemmChoice, EveryShapeTypeAndAlignmentHasAKernel) {
  for (char const* gpu : {"h200", "a100", "rtx4090", "rtx3090", "t4"})
    for (DataType type : {DataType::f64, DataType::f32, DataType::tf32, DataType::f16, DataType::bf16,
                          DataType::e4m3, DataType::e5m2, DataType::s8, DataType::u8, DataType::s32})
      for (char const* letters : {"nn", "nt", "tn", "tt"})
        for (Index m : {0, 1, 17, 4096})
          for (Index k : {0, 1, 333, 4096}) {
            GemmProblem problem = product(type, is_integer(type) ? DataType::s32 : type, m, 65, k, letters);
            problem.a.alignment = 1;
            auto const plan = make_plan(problem, gpu_device(gpu));
            auto const form = plan::canonical(problem);
            EXPECT_EQ(plan::policy_violation(plan.recipe.policy, form.a.type, form.b.type, plan.recipe.sum),
                      "");
            EXPECT_LE(plan::shared_storage_bytes(plan.recipe, plan::canonical(problem)),
                      plan.device.gpu.shared_bytes_per_block);
          }
}

TEST(GemmChoice, DeepProductsOfFewTilesAreSplit) {
  auto const deep =
      make_plan(product(DataType::f32, DataType::f32, 128, 128, 65536, "tn"), gpu_device("h200"));
  EXPECT_GT(deep.recipe.splits, 16);
  EXPECT_EQ(deep.workspace_bytes, deep.recipe.partial_bytes + deep.recipe.flag_bytes);
  auto const large =
      make_plan(product(DataType::f32, DataType::f32, 8192, 8192, 8192, "tn"), gpu_device("h200"));
  EXPECT_EQ(large.recipe.splits, 1);
  EXPECT_EQ(large.workspace_bytes, 0U);
  PlanOptions none;
  none.max_workspace = 0;
  auto const alone =
      make_plan(product(DataType::f32, DataType::f32, 128, 128, 65536, "tn"), gpu_device("h200"), none);
  EXPECT_EQ(alone.recipe.splits, 1);
}

TEST(GemmChoice, SmallProblemsTakeSmallTiles) {
  auto const small =
      make_plan(product(DataType::f32, DataType::f32, 512, 512, 512, "nn"), gpu_device("h200"));
  auto const large =
      make_plan(product(DataType::f32, DataType::f32, 10240, 4096, 4096, "nn"), gpu_device("h200"));
  EXPECT_LT(small.recipe.policy.block_m * small.recipe.policy.block_n,
            large.recipe.policy.block_m * large.recipe.policy.block_n);
  EXPECT_LT(small.recipe.predicted_seconds, large.recipe.predicted_seconds);
}

std::string refusal_of(std::string const& kernel, GemmProblem const& problem, std::string const& gpu,
                       std::string const& policy = "") {
  PlanOptions options;
  options.policy = policy;
  auto const plan = make_plan(problem, gpu_device(gpu), options);
  return entry_of(plan.considered, kernel).refusal;
}

TEST(GemmChoice, RefusalsGiveTheValue) {
  EXPECT_EQ(refusal_of("multistage", product(DataType::f16, DataType::f16, 64, 64, 64, "tn"), "h200",
                       "multiply=fma"),
            "operand a: cp.async cannot transpose elements of 2 bytes; it needs 4");
  EXPECT_EQ(refusal_of("multistage", product(DataType::s8, DataType::s32, 64, 64, 64, "nn"), "h200"),
            "operand a: cp.async cannot interleave s8 contiguous along m or n; double_buffered does");
}

TEST(GemmChoice, TensorCoresTakeWhatTheyCan) {
  auto const multiply_of = [](GemmProblem const& problem, char const* gpu) {
    return make_plan(problem, gpu_device(gpu)).recipe.policy.multiply;
  };
  Index const size = 2048;
  for (char const* letters : {"nn", "nt", "tn", "tt"}) {
    EXPECT_EQ(multiply_of(product(DataType::f16, DataType::f16, size, size, size, letters), "h200"),
              Multiply::wgmma);
    EXPECT_EQ(multiply_of(product(DataType::f16, DataType::f16, size, size, size, letters), "a100"),
              Multiply::mma);
    EXPECT_EQ(multiply_of(product(DataType::tf32, DataType::f32, size, size, size, letters), "a100"),
              Multiply::mma);
    // TF32 is used only if requested.
    EXPECT_EQ(multiply_of(product(DataType::f32, DataType::f32, size, size, size, letters), "h200"),
              Multiply::fma);
    EXPECT_EQ(multiply_of(product(DataType::f64, DataType::f64, size, size, size, letters), "h200"),
              Multiply::mma);
    EXPECT_EQ(multiply_of(product(DataType::f64, DataType::f64, size, size, size, letters), "rtx4090"),
              Multiply::fma);  // implemented by multiply-adds
  }
  EXPECT_EQ(multiply_of(product(DataType::s8, DataType::s32, size, size, size, "tn"), "h200"),
            Multiply::wgmma);
  EXPECT_EQ(multiply_of(product(DataType::s8, DataType::s32, size, size, size, "tn"), "a100"), Multiply::mma);
  EXPECT_EQ(multiply_of(product(DataType::s8, DataType::s32, size, size, size, "nn"), "h200"),
            Multiply::wgmma);  // after repacking
  for (char const* letters : {"nn", "nt", "tn", "tt"}) {
    EXPECT_EQ(multiply_of(product(DataType::s8, DataType::s32, size, size, size, letters), "a100"),
              Multiply::mma);
    EXPECT_EQ(multiply_of(product(DataType::e4m3, DataType::f32, size, size, size, letters), "rtx4090"),
              Multiply::mma);
  }
  EXPECT_EQ(multiply_of(product(DataType::e4m3, DataType::f32, size, size, size, "tn"), "a100"),
            Multiply::fma);

  PlanOptions options;
  options.policy = "multiply=mma";
  options.kernel = "multistage";
  try {
    make_plan(product(DataType::s8, DataType::s32, size, size, size, "nn"), gpu_device("h200"), options);
    FAIL() << "accepted";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what())
                  .find("multiply mma requires s8 contiguous along k; operand a is contiguous along m"),
              std::string::npos)
        << error.what();
  }
}

// Measured on an H200, in us: 2500^3 615 with stream-K and 754 by multistage; 128x4096x4096 92 with stream-K,
// 155 by undivided tiles of 64x64.
TEST(MmaChoice, DoublePrecisionIsLoadedByTma) {
  for (char const* letters : {"nn", "nt", "tn", "tt"})
    for (auto const& [m, n, k] : {std::array<Index, 3>{2500, 2500, 2500}, {128, 4096, 4096}}) {
      auto const plan =
          make_plan(product(DataType::f64, DataType::f64, m, n, k, letters), gpu_device("h200"));
      EXPECT_EQ(plan.kernel, "warp_specialized") << letters << ' ' << m;
      EXPECT_EQ(plan.recipe.policy.partition, Partition::stream_k) << letters << ' ' << m;
    }
  auto const planned = [](std::string const& policy, bool invariant = false) {
    PlanOptions options;
    options.kernel = "warp_specialized";
    options.policy = policy;
    options.batch_invariant = invariant;
    return make_plan(product(DataType::f64, DataType::f64, 2048, 2048, 2048, "nn"), gpu_device("h200"),
                     options)
        .recipe.policy;
  };
  EXPECT_EQ(planned("stages=2").block_n, 128);  // of "large"
  EXPECT_EQ(planned("cluster_m=2").cluster_m, 2);
  EXPECT_THROW(planned("small,cluster_m=8"), Error);  // no equal parts of a step
  EXPECT_THROW(planned("multiply=mma", true), Error);
  EXPECT_EQ(
      make_plan(product(DataType::f64, DataType::f64, 2501, 2501, 2501, "nn"), gpu_device("h200")).kernel,
      "multistage");
  EXPECT_EQ(
      make_plan(product(DataType::f64, DataType::f64, 2500, 2500, 2500, "nn"), gpu_device("a100")).kernel,
      "multistage");
}

// Measured on an H200: 121.9 us by multiply-adds. Tensor cores take 0.67 of the time that used to be
// predicted for them.
TEST(MmaChoice, DoublePrecisionTakesTensorCoresForFewTiles) {
  for (char const* letters : {"nn", "nt", "tn", "tt"})
    for (char const* gpu : {"h200", "h100", "a100"})
      EXPECT_EQ(make_plan(product(DataType::f64, DataType::f64, 300, 5000, 700, letters), gpu_device(gpu))
                    .recipe.policy.multiply,
                Multiply::mma)
          << letters << " on " << gpu;
}

// The tensor cores of a GeForce multiply 16-bit types at twice the rate of multiply-adds, tf32 at the same.
TEST(GemmChoice, TensorCoresOfEveryCardAreUsed) {
  for (char const* gpu :
       {"rtx3060", "rtx3090", "rtx4090", "rtx5090", "a10", "l4", "l40s", "a100", "h100", "h200", "b200"})
    for (DataType const type : {DataType::f16, DataType::bf16, DataType::s8})
      for (char const* letters : {"nn", "nt", "tn", "tt"})
        for (Index const size : {1024, 4096}) {
          if (type == DataType::s8 && size < 4096) continue;  // copies of bytes take longer than multiplying
          DataType const result = type == DataType::s8 ? DataType::s32 : type;
          GemmProblem const problem = product(type, result, size, size, size, letters);
          Multiply const multiply = make_plan(problem, gpu_device(gpu)).recipe.policy.multiply;
          EXPECT_TRUE(multiply == Multiply::mma || multiply == Multiply::wgmma)
              << gpu << ' ' << name_of(type) << ' ' << letters << ' ' << size;
        }
}

// As measured on an H100 (docs/decisions/0044): 512 rows use eight warps for 128x128 and no parts of k, and
// large products use the largest tile; single elements copied one by one leave tf32 to TMA.
TEST(GemmChoice, TilesOfMmaFollowMeasurements) {
  PlanOptions options;
  options.kernel = "multistage";
  options.policy = "multiply=mma";
  for (DataType const type : {DataType::f16, DataType::bf16, DataType::tf32, DataType::s8}) {
    DataType const result = type == DataType::s8     ? DataType::s32
                            : type == DataType::tf32 ? DataType::f32
                                                     : type;
    auto const few = make_plan(product(type, result, 512, 4096, 4096, "tn"), gpu_device("h100"), options);
    EXPECT_EQ(few.recipe.policy_name, "large_deep") << name_of(type);
    EXPECT_EQ(few.recipe.splits, 1) << name_of(type);
    auto const many = make_plan(product(type, result, 4096, 4096, 4096, "tn"), gpu_device("h100"), options);
    EXPECT_EQ(many.recipe.policy_name, "huge") << name_of(type);
  }
  auto const odd =
      make_plan(product(DataType::tf32, DataType::f32, 127, 8191, 4093, "tn"), gpu_device("h100"));
  EXPECT_EQ(odd.recipe.policy.multiply, Multiply::wgmma);
  GemmProblem const halves = product(DataType::f16, DataType::f16, 512, 512, 512, "nn");
  EXPECT_EQ(refusal_of("warp_specialized", halves, "h100", "tall_deep"),
            "policy 'tall_deep' applies only to multistage with multiply mma");
  EXPECT_EQ(refusal_of("multistage", halves, "h100", "thin"),
            "policy 'thin' applies only to products by wgmma");
}

// On GPUs without wgmma, mma.sync reads copies of bytes that are not contiguous along k.
TEST(GemmChoice, BytesAreCopiedForMma) {
  Device device = this_device(Backend::emulator);
  device.gpu = describe_gpu("a100");
  PlanOptions options;
  options.kernel = "multistage";
  options.policy = "multiply=mma";
  for (char const* letters : {"nn", "nt", "tt", "tn"})
    for (Index const k : {96, 37, 1, 0}) {
      GemmProblem const problem = product(DataType::s8, DataType::s32, 70, 45, k, letters);
      auto const prepared = prepare(make_plan(problem, device, options));
      GemmRecipe const& recipe = prepared.plan().recipe;
      EXPECT_EQ(recipe.policy.multiply, Multiply::mma);
      bool const copied = recipe.repack_a.bytes + recipe.repack_b.bytes > 0;
      EXPECT_TRUE(k != 96 || copied == (letters != std::string("tn"))) << letters;
      test::Trial<GemmProblem> trial(problem, 3, test::Values::small_integers);
      trial.compare(trial.run(prepared), {.exact = true}, "multistage");
    }
}

// As measured on an H200 (docs/decisions/0045): where all tiles are resident at the same time, at least ten
// stages are faster than two blocks of five; where two blocks share a multiprocessor, they are not planned.
TEST(GemmChoice, ShortProductsTakeManyStages) {
  auto const expect_many_stages = [](Index m, Index n, Index k) {
    GemmPolicy const policy =
        make_plan(product(DataType::bf16, DataType::bf16, m, n, k, "tn"), gpu_device("h200")).recipe.policy;
    EXPECT_EQ(policy.block_m, 64) << m;
    EXPECT_EQ(policy.block_n, 64) << m;
    EXPECT_EQ(policy.blocks, 1) << m;
    EXPECT_GE(policy.stages, 10) << m;
  };
  expect_many_stages(384, 1152, 896);
  expect_many_stages(640, 640, 640);
  expect_many_stages(512, 1024, 2048);
}

TEST(GemmChoice, PoliciesByNameAndByField) {
  PlanOptions options;
  GemmProblem const problem = product(DataType::f32, DataType::f32, 1000, 1000, 1000, "nn");
  options.policy = "tall";
  EXPECT_EQ(make_plan(problem, gpu_device("h200"), options).recipe.policy_name, "tall");
  options.policy = "large,stages=5,epilogue=staged";
  options.kernel = "multistage";
  auto const plan = make_plan(problem, gpu_device("h200"), options);
  EXPECT_EQ(plan.recipe.policy.stages, 5);
  EXPECT_EQ(plan.recipe.policy.epilogue, EpilogueSchedule::staged);
  auto const complaint = [&](char const* policy) {
    try {
      options.policy = policy;
      make_plan(problem, gpu_device("h200"), options);
    } catch (Error const& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(complaint("gigantic").find("valid policies: small, medium, large, tall, wide, huge"),
            std::string::npos);
  EXPECT_NE(complaint("block_q=3").find("unknown field 'block_q' (did you mean block_m?)"),
            std::string::npos);
  EXPECT_NE(complaint("block_m=100").find("block_m = 100 is not a multiple of warp_m = 64; nearest: 128"),
            std::string::npos);
  EXPECT_NE(complaint("stages=9").find("stages = 9; multistage takes 3 to 5"), std::string::npos);
  EXPECT_NE(complaint("huge,block_k=64,stages=5").find("bytes of shared memory per block"),
            std::string::npos);
}

TEST(GemmChoice, MoreScalarsThanAKernelTakesAreRefused) {
  std::string text = "acc";
  for (int i = 0; i < 33; ++i) text += " + s" + std::to_string(i);
  try {
    make_plan(product(DataType::f32, DataType::f32, 64, 64, 64, "nn", text), gpu_device("h200"));
    FAIL() << "accepted";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("names 33 scalars; a kernel supports at most 32"),
              std::string::npos)
        << error.what();
  }
}

TEST(GemmChoice, PlansArePure) {
  GemmProblem const problem =
      product(DataType::f16, DataType::f32, 333, 777, 999, "tt", "relu(acc + bias[n])");
  auto const one = make_plan(problem, gpu_device("a100")), other = make_plan(problem, gpu_device("a100"));
  EXPECT_EQ(one.recipe, other.recipe);
  EXPECT_EQ(to_string(one.recipe), to_string(other.recipe));
}

}  // namespace
}  // namespace cosmati
