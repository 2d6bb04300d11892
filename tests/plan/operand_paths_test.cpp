// How operands with a layout that wgmma does not support are planned: through registers, by threads, or
// repacked first.
#include "src/plan/gemm/operand_paths.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/gemm_problem.h"
#include "tests/plan/product_text.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::main_text;
using testing::product;

Plan<GemmProblem> plan_of(GemmProblem const& problem, std::string const& policy = "") {
  PlanOptions options;
  options.kernel = "warp_specialized";
  options.policy = policy;
  return make_plan(problem, gpu_device("h200"), options);
}

bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

std::string note_of(Plan<GemmProblem> const& plan) {
  return entry_of(plan.considered, "warp_specialized").note;
}

GemmProblem tf32(std::string const& letters, Index n = 4096) {
  return product(DataType::tf32, DataType::f32, 4096, n, 4096, letters);
}

TEST(OperandPaths, Tf32AlongMGoesThroughRegisters) {
  // d is column-major. For tt, b^T becomes the kernel's A; for nn, a does, and d is M-major in the kernel.
  Plan<GemmProblem> const tt = plan_of(tf32("tt")), nn = plan_of(tf32("nn"));
  EXPECT_TRUE(tt.recipe.swapped);
  EXPECT_FALSE(nn.recipe.swapped);
  for (Plan<GemmProblem> const* plan : {&tt, &nn}) {
    EXPECT_EQ(plan->recipe.a.along, Along::mn);
    EXPECT_EQ(plan->recipe.b.along, Along::k);
    EXPECT_EQ(plan->recipe.repack_a.bytes + plan->recipe.repack_b.bytes, 0u);
    EXPECT_EQ(plan->workspace_bytes, 0u);
    EXPECT_TRUE(has(to_string(plan->recipe), "a along m by 4 through registers")) << to_string(plan->recipe);
  }
  EXPECT_TRUE(has(note_of(nn), "predicted, a transposed first: ")) << note_of(nn);
  EXPECT_TRUE(has(note_of(nn), "; a through registers: ")) << note_of(nn);
  EXPECT_TRUE(has(main_text(nn), "TensorDestination<f32, Along::mn>"));
  EXPECT_TRUE(has(main_text(tt), "TensorDestination<f32>"));
}

TEST(OperandPaths, OfTwoThatLieAlongMAndNOneIsTransposed) {
  Plan<GemmProblem> const nt = plan_of(tf32("nt"));
  EXPECT_EQ(nt.recipe.repack_a.bytes, 0u);
  EXPECT_EQ(nt.recipe.repack_b.from, Along::mn);
  EXPECT_EQ(nt.recipe.repack_b.to, Along::k);
  EXPECT_TRUE(has(note_of(nt), "a transposed by threads")) << note_of(nt);  // slower for large products
  EXPECT_EQ(plan::operand_paths(tf32("nt")).size(), 6u);
  EXPECT_EQ(plan::operand_paths(tf32("tn")).size(), 1u);
}

TEST(OperandPaths, ResultsThatTheEngineCannotStoreAlongMAreStaged) {
  GemmProblem odd = tf32("nn");
  odd.d.layout.stride[2] = 4099;
  Plan<GemmProblem> const plan = plan_of(odd, "operands=registers");
  EXPECT_EQ(plan.recipe.policy.epilogue, EpilogueSchedule::staged);
  EXPECT_TRUE(has(main_text(plan), "StridedDestination<f32, 1, Along::mn>"));
}

TEST(OperandPaths, MisalignedOperandsComeByThreads) {
  GemmProblem problem = product(DataType::bf16, DataType::bf16, 256, 512, 512, "tn");
  problem.a.alignment = 8;
  Plan<GemmProblem> const plan = plan_of(problem);
  OperandAccess const& of_a = plan.recipe.swapped ? plan.recipe.b : plan.recipe.a;
  OperandAccess const& of_b = plan.recipe.swapped ? plan.recipe.a : plan.recipe.b;
  EXPECT_TRUE(of_a.by_threads);
  EXPECT_EQ(of_a.width, 4);
  EXPECT_FALSE(of_b.by_threads);
  EXPECT_EQ(plan.workspace_bytes, 0u);
  EXPECT_EQ(plan.recipe.policy.cluster_m * plan.recipe.policy.cluster_n, 1);
  std::string const text = main_text(plan);
  EXPECT_TRUE(has(text, "StridedSource<bf16, Along::k, 4>")) << text;
  EXPECT_TRUE(has(text, "TensorSource<bf16, Along::k>")) << text;
  // For a large product of single-element runs, copies by threads would take longer than repacking.
  Plan<GemmProblem> const large = plan_of(product(DataType::bf16, DataType::bf16, 4095, 4095, 4095, "tn"));
  EXPECT_GT(large.recipe.repack_a.bytes, 0u);
  EXPECT_TRUE(has(note_of(large), "copied by threads")) << note_of(large);
  // M-major bytes: cp.async cannot transpose them.
  for (plan::OperandPath const& path :
       plan::operand_paths(product(DataType::s8, DataType::s32, 4095, 4095, 4095, "nt")))
    EXPECT_FALSE(path.form.a.by_threads || path.form.b.by_threads);
}

// A filter gradient of a 1x1 filter: long, with few columns, so that a pass would take most of the time.
TEST(OperandPaths, ThreadsTransposeTf32ForThinProducts) {
  GemmProblem const thin = product(DataType::tf32, DataType::f32, 256, 64, 200704, "nt");
  Plan<GemmProblem> const plan = plan_of(thin);
  EXPECT_TRUE(plan.recipe.b.by_threads && plan.recipe.b.transposed) << to_string(plan.recipe);
  EXPECT_EQ(plan.recipe.a.along, Along::mn);
  EXPECT_FALSE(plan.recipe.a.by_threads);
  EXPECT_EQ(plan.recipe.repack_a.bytes + plan.recipe.repack_b.bytes, 0u);
  EXPECT_TRUE(has(main_text(plan), "TransposedSource<tf32>")) << main_text(plan);
}

// A tile has at least 64 rows, so the rows of a d that has few become the columns of a tile, whichever major
// order d then has.
TEST(OperandPaths, FewRowsAreExchanged) {
  GemmProblem const one = product(DataType::bf16, DataType::bf16, 1, 22016, 4096, "tn");
  EXPECT_FALSE(plan::canonical(one).swapped);
  EXPECT_EQ(plan::operand_paths(one).size(), 2u);
  Plan<GemmProblem> const of_one = plan_of(one, "192x16");  // 115 tiles, or 1376 as they lie
  EXPECT_TRUE(of_one.recipe.swapped);
  EXPECT_EQ(of_one.recipe.policy.block_n, 16);
  EXPECT_TRUE(has(note_of(of_one), "; operands in place, exchanged: ")) << note_of(of_one);
  EXPECT_TRUE(has(main_text(of_one), "TensorDestination<bf16, Along::mn>")) << main_text(of_one);

  GemmProblem rows = product(DataType::bf16, DataType::bf16, 16, 22016, 4096, "tn");
  for (bool const row_major_d : {false, true}) {
    if (row_major_d) rows.d.layout = row_major({1, 16, 22016});
    std::vector<plan::OperandPath> const paths = plan::operand_paths(rows);
    ASSERT_EQ(paths.size(), 2u);
    EXPECT_FALSE(paths[0].exchanged);
    EXPECT_TRUE(paths[1].exchanged);
    EXPECT_EQ(paths[1].form.swapped, row_major_d);
  }

  Plan<GemmProblem> const of_rows = plan_of(rows, "192x16");
  EXPECT_TRUE(of_rows.recipe.swapped);
  EXPECT_TRUE(has(main_text(of_rows), "TensorDestination<bf16, Along::mn>")) << main_text(of_rows);
  GemmProblem odd = one;  // TMA does not store rows that end within a unit of 16 bytes
  odd.b = testing::matrix(DataType::bf16, 4096, 22015, 'n');
  odd.d = testing::matrix(DataType::bf16, 1, 22015, 'n');
  Plan<GemmProblem> const of_odd = plan_of(odd, "192x16");
  EXPECT_TRUE(has(main_text(of_odd), "StridedDestination<bf16, 1, Along::mn>")) << main_text(of_odd);

  // 96 tiles with 64 of the 6144 columns each leave multiprocessors idle; 128 tiles with 48 columns do not.
  PlanOptions predicted;
  predicted.built_in_tuning = false;
  auto const wide = make_plan(product(DataType::bf16, DataType::bf16, 64, 6144, 4096, "tn"),
                              testing::gpu_device("h200"), predicted);
  EXPECT_FALSE(wide.recipe.swapped);
  EXPECT_EQ(wide.recipe.policy_name, "64x48");
  EXPECT_TRUE(has(note_of(wide), "; operands in place, exchanged: ")) << note_of(wide);
  EXPECT_TRUE(has(main_text(wide), "TensorDestination<bf16, Along::mn>")) << main_text(wide);

  EXPECT_EQ(plan::operand_paths(one, false).size(), 1u);  // batch-invariant plans have one order for all m
  // Also if there are few tiles, unless operands must be repacked or copied by threads.
  EXPECT_EQ(plan::operand_paths(product(DataType::bf16, DataType::bf16, 65, 22016, 4096, "tn")).size(), 2u);
  EXPECT_EQ(plan::operand_paths(product(DataType::bf16, DataType::bf16, 4096, 4096, 4096, "tn")).size(), 1u);
  GemmProblem misaligned = product(DataType::bf16, DataType::bf16, 512, 512, 512, "tn");
  misaligned.a.alignment = misaligned.b.alignment = 8;
  std::vector<plan::OperandPath> const paths = plan::operand_paths(misaligned);
  EXPECT_TRUE(
      std::none_of(paths.begin(), paths.end(), [](plan::OperandPath const& path) { return path.exchanged; }));
}

// A tensor map whose batch has a stride of 0 reads the same matrix again.
TEST(OperandPaths, AMatrixSharedByABatchIsLoadedByTma) {
  for (char const operand : {'a', 'b'}) {
    GemmProblem const even =
        testing::batch_sharing(operand, 64, product(DataType::f16, DataType::f16, 784, 256, 512, "nn"));
    ASSERT_EQ(plan::operand_paths(even).size(), 1u);
    Plan<GemmProblem> const plan = plan_of(even);
    EXPECT_EQ(plan.workspace_bytes, 0u);
    EXPECT_FALSE(has(to_string(plan.recipe), "by threads")) << to_string(plan.recipe);
  }
  // Rows of 250 bytes: the copy, too, is a single matrix of rows of 256.
  GemmProblem const odd =
      testing::batch_sharing('b', 64, product(DataType::f16, DataType::f16, 784, 256, 125, "nn"));
  Plan<GemmProblem> const plan = plan_of(odd, "operands=repacked");
  EXPECT_EQ(plan.recipe.repack_a.bytes + plan.recipe.repack_b.bytes, std::size_t{256 * 256});
}

// Layers of 56x56 pixels and 64 channels in NCHW: with 64 rows, a cluster of two tiles would have an idle
// one.
TEST(OperandPaths, NeitherTilesNorClustersOfABatchAreHalfEmpty) {
  GemmProblem const layer =
      testing::batch_sharing('b', 64, product(DataType::f16, DataType::f16, 3136, 64, 64, "nn"));
  Plan<GemmProblem> const plan = plan_of(layer);
  EXPECT_TRUE(plan.recipe.swapped);
  EXPECT_EQ(plan.recipe.policy.block_m * plan.recipe.policy.cluster_m, 64) << to_string(plan.recipe);
}

// Results of 4 bytes are aligned to 16 bytes with half as many elements as their operands of 2 bytes.
TEST(OperandPaths, AlignedResultsOfABatchAreNotStoredInParts) {
  auto const seconds = [](DataType result, Index m) {
    GemmProblem const batch =
        testing::batch_sharing(' ', 64, product(DataType::f16, result, m, 512, 64, "tn"));
    return plan_of(batch, "huge").recipe.predicted_seconds;
  };
  for (DataType const result : {DataType::f16, DataType::f32})
    EXPECT_LT(1.2 * seconds(result, 512), seconds(result, 501)) << name_of(result);
}

TEST(OperandPaths, AreChosenByHand) {
  EXPECT_GT(plan_of(tf32("nn"), "operands=repacked").recipe.repack_b.bytes, 0u);
  EXPECT_EQ(plan_of(tf32("nn"), "huge,operands=registers").recipe.policy_name, "huge");
  EXPECT_TRUE(plan_of(tf32("nn", 4097), "vast,operands=repacked").recipe.repack_b.bytes > 0);
  PolicyRequest const request = "operands=threads,huge";
  EXPECT_EQ(request.operands, OperandKind::threads);
  EXPECT_EQ(request.names, std::vector<std::string>{"huge"});
  EXPECT_THROW((void)plan_of(tf32("nn"), "operands=none"), Error);
  EXPECT_THROW((void)plan_of(tf32("tn"), "operands=threads"), Error);  // TMA supports both operands
  EXPECT_TRUE(plan_of(tf32("nn"), "operands=threads").recipe.b.transposed);
}

}  // namespace
}  // namespace cosmati
