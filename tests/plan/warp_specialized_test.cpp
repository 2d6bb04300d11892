// Planning of the warp_specialized main loop, for a GPU that is not installed.
#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "src/backend/cuda/executor.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/tiles/fitted_tiles.h"
#include "src/plan/gemm/warp_specialized.h"
#include "tests/plan/gemm_problem.h"
#include "tests/plan/product_text.h"
#include "tests/support/complaint.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

Plan<GemmProblem> plan_of(GemmProblem const& problem, std::string const& policy = "") {
  PlanOptions options;
  options.kernel = "warp_specialized";
  options.policy = policy;
  return make_plan(problem, gpu_device("h200"), options);
}

std::string refusal_of(GemmProblem const& problem, std::string const& gpu = "h200") {
  PlanOptions options;
  options.max_workspace = 0;
  return entry_of(make_plan(problem, gpu_device(gpu), options).considered, "warp_specialized").refusal;
}

// The rejection if operands must be repacked and no workspace is available.
std::string refusal_of_copies(GemmProblem const& problem) {
  PlanOptions options;
  options.kernel = "warp_specialized";
  options.policy = "operands=repacked";
  options.max_workspace = 0;
  try {
    return to_string(make_plan(problem, gpu_device("h200"), options).recipe);
  } catch (Error const& error) {
    return error.what();
  }
}

TEST(WarpSpecialized, RefusalsGiveTheValue) {
  EXPECT_EQ(refusal_of(product(DataType::bf16, DataType::bf16, 512, 512, 512, "nn")), "");
  EXPECT_EQ(refusal_of(product(DataType::bf16, DataType::bf16, 512, 512, 512, "nn"), "a100"),
            "wgmma needs compute capability 9.0; " + describe_gpu("a100").name + " has 8.0");
  std::string const of_odd = refusal_of_copies(product(DataType::bf16, DataType::bf16, 1001, 512, 512, "nn"));
  EXPECT_NE(
      of_odd.find("operand a: leading dimension 1001 is not a multiple of 8 elements (16 bytes); nearest: "
                  "1008; with the operand repacked: needs 1032192 bytes of workspace; at most 0"),
      std::string::npos)
      << of_odd;
  EXPECT_EQ(refusal_of(product(DataType::f32, DataType::f32, 512, 512, 512, "nn")),
            "multiply wgmma does not support f32 and f32 with sums in f32");
  EXPECT_EQ(
      refusal_of(product(DataType::s8, DataType::s32, 512, 512, 512, "nn")),
      "multiply wgmma requires s8 contiguous along k; operand a is contiguous along m; with the operand repacked: needs "
      "262144 bytes of workspace; at most 0");
  GemmProblem misaligned = product(DataType::bf16, DataType::bf16, 512, 512, 512, "tn");
  misaligned.b.alignment = 8;
  std::string const of_misaligned = refusal_of_copies(misaligned);
  EXPECT_NE(
      of_misaligned.find("operand b: aligned to 8 bytes; TMA requires 16; with the operand repacked: needs "
                         "524288 bytes of workspace; at most 0"),
      std::string::npos)
      << of_misaligned;
  EXPECT_EQ(refusal_of(misaligned), "");  // threads copy it
  EXPECT_EQ(refusal_of(product(DataType::e4m3, DataType::f32, 512, 512, 512, "tn")), "");
  EXPECT_EQ(plan_of(product(DataType::e4m3, DataType::f32, 512, 512, 512, "tn")).kernel, "warp_specialized");
}

TEST(WarpSpecialized, OperandsAreCopiedWhereItPays) {
  auto const planned = [](GemmProblem const& problem) { return make_plan(problem, gpu_device("h200")); };
  Plan<GemmProblem> const odd = planned(product(DataType::bf16, DataType::bf16, 4095, 4095, 4095, "tn"));
  EXPECT_EQ(odd.kernel, "warp_specialized");
  for (RepackRecipe const& repack : {odd.recipe.repack_a, odd.recipe.repack_b}) {
    EXPECT_EQ(repack.from, Along::k);
    EXPECT_EQ(repack.to, Along::k);
    EXPECT_EQ(repack.width, 1);
    EXPECT_EQ(repack.pitch, 4096);
    EXPECT_EQ(repack.offset % 256, 0u);
    EXPECT_LE(repack.offset + repack.bytes, odd.workspace_bytes);
  }
  // M- and N-major bytes are transposed; K-major bytes are not.
  Plan<GemmProblem> const bytes = planned(product(DataType::s8, DataType::s32, 4096, 4096, 4096, "nn"));
  EXPECT_EQ(bytes.kernel, "warp_specialized");
  bool const a_is_first = !bytes.recipe.swapped;
  RepackRecipe const& of_a = a_is_first ? bytes.recipe.repack_a : bytes.recipe.repack_b;
  RepackRecipe const& of_b = a_is_first ? bytes.recipe.repack_b : bytes.recipe.repack_a;
  EXPECT_EQ(of_a.from, Along::mn);
  EXPECT_EQ(of_a.to, Along::k);
  EXPECT_EQ(of_b.bytes, 0u);
  // A small product takes less time than repacking.
  EXPECT_EQ(planned(product(DataType::bf16, DataType::bf16, 63, 63, 63, "tn")).workspace_bytes, 0u);
}

TEST(WarpSpecialized, ItsPoliciesAreItsOwn) {
  PlanOptions options;
  options.policy = "deep_pair,stages=8";
  Plan<GemmProblem> const plan =
      make_plan(product(DataType::bf16, DataType::bf16, 64, 64, 4096, "tn"), gpu_device("h200"), options);
  EXPECT_EQ(plan.kernel, "warp_specialized");
  EXPECT_EQ(plan.recipe.policy.stages, 8);
  EXPECT_EQ(entry_of(plan.considered, "multistage").refusal,
            "policy 'deep_pair' applies only to products by wgmma");
}

TEST(WarpSpecialized, SumsInF16TakeHalfOfTheRegisters) {
  GemmProblem problem = product(DataType::f16, DataType::f16, 4096, 4096, 4096, "nt");
  problem.accumulator = DataType::f16;
  Plan<GemmProblem> const plan = make_plan(problem, gpu_device("h200"));
  EXPECT_EQ(plan.kernel, "warp_specialized");
  EXPECT_EQ(plan.recipe.sum, DataType::f16);
  PlanOptions named;
  named.policy = "256x256";
  EXPECT_EQ(make_plan(problem, gpu_device("h200"), named).recipe.policy_name, "256x256");
  EXPECT_TRUE(plan::wgmma_takes(DataType::f16, DataType::f16, DataType::f16));
  EXPECT_FALSE(plan::wgmma_takes(DataType::bf16, DataType::bf16, DataType::f16));
  GemmPolicy policy = plan::warpgroup_policies(2).front().policy;
  policy.block_m = policy.block_n = policy.warp_n = 256;
  policy.warp_m = 32, policy.thread_m = 4, policy.thread_n = 64, policy.stages = 3;
  EXPECT_EQ(plan::policy_violation(policy, DataType::f16, DataType::f16, DataType::f16), "");
  EXPECT_EQ(plan::policy_violation(policy, DataType::f16, DataType::f16, DataType::f32),
            "256 accumulators per thread; registers hold at most 192");
  // In a cluster along k, the sums that blocks exchange take half of the shared memory.
  auto const form = plan::canonical(problem);
  auto sums_in_f32 = form;
  sums_in_f32.sum = DataType::f32;
  policy = plan::warpgroup_policies(2).front().policy;
  policy.cluster_k = 2;
  EXPECT_EQ(plan::warp_specialized_shared_bytes(policy, sums_in_f32) -
                plan::warp_specialized_shared_bytes(policy, form),
            policy.block_m * policy.block_n * 2);
}

TEST(WarpSpecialized, EveryNamedPolicyIsLegalAndFits) {
  for (DataType type : {DataType::bf16, DataType::tf32, DataType::s8})
    for (plan::NamedPolicy const& named : plan::window_policies(size_of(type))) {
      EXPECT_EQ(plan::warpgroup_policy_violation(named.policy, size_of(type)), "") << named.name;
      for (DataType result : {DataType::f64, DataType::f32, DataType::f16, DataType::s8}) {
        auto const form = plan::canonical(product(type, result, 512, 512, 512, "tn"));
        EXPECT_LE(plan::warp_specialized_shared_bytes(named.policy, form),
                  gpu_device("h200").gpu.shared_bytes_per_block)
            << named.name << ' ' << name_of(result);
      }
    }
}

TEST(WarpSpecialized, AShortKHasShallowSteps) {
  auto const depth_of_step = [](Index k, DataType type, PlanOptions const& options = {}) {
    Plan<GemmProblem> const plan =
        make_plan(product(type, type, 100'000, 96, k, "tn"), gpu_device("h100"), options);
    EXPECT_EQ(plan.kernel, "warp_specialized") << k;
    return plan.recipe.policy.block_k;
  };
  EXPECT_EQ(depth_of_step(16, DataType::f16), 16);
  EXPECT_EQ(depth_of_step(24, DataType::bf16), 32);
  EXPECT_EQ(depth_of_step(32, DataType::bf16), 32);
  EXPECT_EQ(depth_of_step(40, DataType::bf16), 64);
  EXPECT_EQ(depth_of_step(512, DataType::bf16), 64);
  PlanOptions options;
  options.policy = "192x96,block_k=64";
  EXPECT_EQ(depth_of_step(16, DataType::f16, options), 64);
}

// The kernel's text asserts the bytes of shared memory that the plan expects; small tiles are padded.
TEST(WarpSpecialized, ShallowStepsHaveTheSharedMemoryThatThePlanExpects) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  // With 16 columns, steps of 32 bytes would be too short.
  for (auto const& [policy, block_k] : {std::pair{"64x16", 32}, std::pair{"192x32", 16},
                                        std::pair{"thin", 16}, std::pair{"large_stores", 16}}) {
    PlanOptions options;
    options.policy = policy;
    options.kernel = "warp_specialized";
    auto const plan =
        make_plan(product(DataType::f16, DataType::f16, 784, 48, 16, "tn"), gpu_device("h100"), options);
    EXPECT_EQ(plan.recipe.policy.block_k, block_k);
    auto const sources = cuda::kernel_sources(plan::program_of(plan), plan.device.gpu);
    EXPECT_EQ(jit::compile(sources.front()).local_bytes, 0) << policy;
  }
}

// A stage's barrier expects the bytes of its tiles including their padding, which never arrives: kernels with
// tiles of 16 columns and steps of 32 bytes hung on an H200.
TEST(WarpSpecialized, TilesOfAStepAreMultiplesOf1024Bytes) {
  for (auto const& [m, n] : {std::pair<Index, Index>{4096, 16}, {16, 4096}, {100'000, 8}, {64, 1}})
    for (Index const k : {8, 16, 32, 40})
      for (auto const& named : plan::warpgroup_policies(2)) {
        PlanOptions options;
        options.kernel = "warp_specialized";
        options.policy = named.name;
        GemmPolicy const p =
            make_plan(product(DataType::f16, DataType::f16, m, n, k, "tn"), gpu_device("h200"), options)
                .recipe.policy;
        EXPECT_EQ(p.block_n * p.block_k * 2 % 1024, 0) << named.name << ' ' << m << 'x' << n << 'x' << k;
      }
  GemmPolicy narrow = plan::warpgroup_policies(2).front().policy;
  narrow.block_n = narrow.warp_n = 16, narrow.thread_n = 4, narrow.block_k = 16;
  EXPECT_EQ(
      plan::warpgroup_policy_violation(narrow, 2),
      "block_n = 16, block_k = 16: a step of B has 512 bytes; warp_specialized requires a multiple of 1024");
  narrow.block_n = 48;
  EXPECT_NE(plan::warpgroup_policy_violation(narrow, 2).find("1536 bytes"), std::string::npos);
}

TEST(WarpSpecialized, IllegalPoliciesAreNamed) {
  GemmPolicy policy = plan::warpgroup_policies(2).front().policy;
  policy.block_k = 48;
  EXPECT_EQ(plan::warpgroup_policy_violation(policy, 2),
            "block_k = 48; a step of warp_specialized is 32, 64 or 128 bytes deep, here 16, 32 or 64");
  policy.block_k = 64;
  policy.warp_m = 64;
  EXPECT_EQ(plan::warpgroup_policy_violation(policy, 2),
            "warp_m = 64; a warp of a warpgroup has 16 or 32 rows");
  policy.warp_m = 16;
  policy.cluster_k = 3;
  EXPECT_EQ(plan::warpgroup_policy_violation(policy, 2),
            "cluster_k = 3; valid values: powers of two up to 8");
  policy.cluster_k = 2;
  policy.cluster_m = 2;
  EXPECT_EQ(
      plan::warpgroup_policy_violation(policy, 2),
      "cluster_k = 2 with clusters of 2x1 and warp_n = 64; it requires 1x1, warp_n = block_n, a multiple of 8 "
      "columns for each block, and no ping_pong");
  // Clusters up to the size that the kernel and every Hopper GPU support.
  policy.cluster_k = 1;
  for (auto const& [m, n] : {std::pair{4, 2}, {2, 4}, {8, 1}, {1, 8}}) {
    policy.cluster_m = m, policy.cluster_n = n;
    EXPECT_EQ(plan::warpgroup_policy_violation(policy, 2), "") << m << 'x' << n;
  }
  policy.cluster_m = policy.cluster_n = 4;
  EXPECT_EQ(
      plan::warpgroup_policy_violation(policy, 2),
      "a cluster of 4x4 blocks; it may have at most 8, each with a multiple of 8 rows of the shared tiles");
  policy.cluster_m = 2, policy.cluster_n = 1, policy.cluster_k = 2;
  // 12 columns each, for which the kernel would not compile.
  policy.cluster_m = 1;
  policy.cluster_k = 8;
  policy.block_n = policy.warp_n = 96;
  policy.thread_n = 24;
  EXPECT_EQ(
      plan::warpgroup_policy_violation(policy, 2),
      "cluster_k = 8 with clusters of 1x1 and warp_n = 96; it requires 1x1, warp_n = block_n, a multiple of 8 "
      "columns for each block, and no ping_pong");
}

TEST(WarpSpecialized, CoordinatesHave32Bits) {
  PlanOptions options;
  options.kernel = "warp_specialized";
  auto const complaint = testing::complaint_of([&] {
    make_plan(product(DataType::bf16, DataType::bf16, 3'000'000'000, 16, 16, "tn"), gpu_device("h200"),
              options);
  });
  EXPECT_NE(complaint.find("an extent of 3000000000; multiply wgmma supports at most 2147483391"),
            std::string::npos)
      << complaint;
}

// Blocks of a cluster load whole boxes, or eight rows or more of each.
TEST(WarpSpecialized, ClustersDivideTheStepsOfTheirOperands) {
  auto const refusal = [](int m, int n, int depth, int cluster_m, int cluster_n, Along along) {
    GemmPolicy policy = plan::warpgroup_policies(2).front().policy;
    policy.block_m = m, policy.block_n = policy.warp_n = n, policy.block_k = depth;
    policy.cluster_m = cluster_m, policy.cluster_n = cluster_n;
    return plan::slices_violation(policy, along, along, 2);
  };
  EXPECT_EQ(refusal(128, 208, 64, 2, 1, Along::mn), "");
  EXPECT_EQ(refusal(128, 144, 64, 2, 1, Along::mn), "");
  EXPECT_EQ(refusal(128, 160, 16, 4, 1, Along::k), "");
  EXPECT_EQ(refusal(128, 160, 16, 4, 1, Along::mn),
            "4 blocks of a cluster share a step of b, 160x16 elements, which they cannot divide equally");
  EXPECT_EQ(refusal(128, 128, 16, 1, 4, Along::mn),
            "4 blocks of a cluster share a step of a, 128x16 elements, which they cannot divide equally");
  EXPECT_EQ(refusal(128, 48, 64, 3, 1, Along::mn),
            "3 blocks of a cluster share a step of b, 48x64 elements, which they cannot divide equally");
  // Such tiles are not planned.
  GemmRecipe const planned = plan_of(product(DataType::bf16, DataType::bf16, 4096, 832, 16, "nt")).recipe;
  EXPECT_EQ(plan::slices_violation(planned.policy, planned.a.along, planned.b.along, 2), "");
}

TEST(WarpSpecialized, WarpgroupsReadWholeRowsOfB) {
  GemmPolicy policy = plan::warpgroup_policies(2).front().policy;
  policy.block_n = policy.warp_n = 72;
  EXPECT_EQ(plan::columns_violation(policy, Along::k, 2), "");
  EXPECT_EQ(plan::columns_violation(policy, Along::mn, 2),
            "warp_n = 72; it must be a multiple of 16 where columns of B are contiguous");
  policy.block_n = 96, policy.warp_n = 48;  // boxes have rows of 64 bytes
  EXPECT_EQ(plan::columns_violation(policy, Along::mn, 2),
            "warp_n = 48; it must be block_n = 96 or a multiple of 32, a row of a box of B");
  policy.warp_n = 96;
  EXPECT_EQ(plan::columns_violation(policy, Along::mn, 2), "");
  // Slices of a cluster along k whose f16 sums fill no run of registers.
  policy = plan::tile_named("64x48", 2, 2)->policy;
  policy.cluster_k = 2;
  EXPECT_EQ(plan::warpgroup_policy_violation(policy, 2, DataType::f32), "");
  EXPECT_EQ(
      plan::warpgroup_policy_violation(policy, 2, DataType::f16),
      "cluster_k = 2 with warp_n = 48: with sums in f16, a block's slice of 24 columns must be 8 or a multiple "
      "of 16");
}

TEST(WarpSpecialized, TilesAreNamedByTheirExtents) {
  auto const tile = plan::tile_named("128x80", 2, 2), shared = plan::tile_named("192x136_1x2", 2, 2);
  ASSERT_TRUE(tile && shared);
  EXPECT_EQ(tile->policy.block_m, 128);
  EXPECT_EQ(tile->policy.warp_n, 80);
  EXPECT_EQ(tile->policy.stages, 7);  // beside a buffer for the whole tile
  EXPECT_EQ(shared->policy.cluster_m, 1);
  EXPECT_EQ(shared->policy.cluster_n, 2);
  for (char const* name : {"", "large", "128", "128x", "x80", "128x80_", "128x80_2", "128x80 ", "16x16",
                           "64x0", "064x80", "64x80_1x1", "64x80_0x1"})
    EXPECT_FALSE(plan::tile_named(name, 2, 2)) << name;
  PlanOptions options;
  options.policy = "128x80";
  Plan<GemmProblem> const plan =
      make_plan(product(DataType::bf16, DataType::bf16, 4096, 4096, 512, "tn"), gpu_device("h200"), options);
  EXPECT_EQ(plan.recipe.policy_name, "128x80");
  EXPECT_NE(entry_of(plan.considered, "multistage").refusal.find("applies only to products by wgmma"),
            std::string::npos);
  EXPECT_EQ(
      plan::warpgroup_policy_violation(plan::tile_named("64x264", 2, 2)->policy, 2),
      "warp_n = 264 of a block tile of 64x264; valid values: multiples of 8 from 16 to 256, in a block tile of "
      "at most 256x256");
  EXPECT_EQ(
      plan::warpgroup_policy_violation(plan::tile_named("64x72", 2, 2)->policy, 2, DataType::f16),
      "warp_n = 72 of a block tile of 64x72; valid values: multiples of 16 from 16 to 256, in a block tile of "
      "at most 256x256");
}

// TMA boxes cover exactly the columns of a warp and of its slice.
TEST(WarpSpecialized, BoxesCoverEveryWidth) {
  for (DataType type : {DataType::f32, DataType::f16, DataType::s8})
    for (int width = 16; width <= 256; width += 16)
      for (int slices : {1, 2, 4, 8}) {
        if (width % (8 * slices) != 0) continue;
        auto form = plan::canonical(product(DataType::bf16, type, 512, 512, 512, "tn"));
        GemmPolicy policy = plan::warpgroup_policies(2).front().policy;
        policy.block_n = policy.warp_n = width;
        policy.thread_n = width / 4;
        policy.cluster_k = slices;
        SCOPED_TRACE(std::string(name_of(type)) + ' ' + std::to_string(width) + '/' + std::to_string(slices));
        TensorStore const store = plan::tensor_store_of(policy, form);
        EXPECT_EQ(store.columns * store.boxes_n, width / slices);
        EXPECT_EQ(store.columns % 8, 0);
        EXPECT_TRUE(!plan::stores_by_tma(policy, form) || store.columns * size_of(form.d.type) >= 32);
      }
}

TEST(WarpSpecialized, ClustersFillUpAndTheLastTilesAreCounted) {
  auto const form = plan::canonical(product(DataType::bf16, DataType::bf16, 512, 384, 512, "tn"));
  GemmPolicy policy = plan::warpgroup_policies(2).front().policy;  // 64x64
  EXPECT_EQ(plan::tiles_of(policy, form), 8 * 6);
  policy.cluster_m = 4;
  EXPECT_EQ(plan::tiles_of(policy, form), 8 * 8);  // m is 384 there: d is computed transposed
}

TEST(WarpSpecialized, LongExpressionsAndUnalignedResultsAreStaged) {
  auto const schedule = [](GemmProblem const& problem) { return plan_of(problem).recipe.policy.epilogue; };
  EXPECT_EQ(schedule(product(DataType::bf16, DataType::bf16, 512, 512, 512, "tn", "relu(acc + bias[n])")),
            EpilogueSchedule::direct);
  EXPECT_EQ(schedule(product(DataType::bf16, DataType::bf16, 512, 512, 512, "tn", "gelu(acc + bias[n])")),
            EpilogueSchedule::staged);
  EXPECT_EQ(schedule(product(DataType::bf16, DataType::bf16, 511, 512, 512, "tn")), EpilogueSchedule::staged);
}

TEST(WarpSpecialized, TheTextNamesItsSourcesAndDestination) {
  std::string const text =
      testing::main_text(plan_of(product(DataType::bf16, DataType::bf16, 512, 512, 512, "tn"), "huge"));
  for (char const* part : {"cosmati/gemm/warp_specialized.h", "TensorSource<bf16, Along::k>",
                           "TensorDestination<bf16>", ".cluster_m = 2", ".ping_pong = false"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

}  // namespace
}  // namespace cosmati
