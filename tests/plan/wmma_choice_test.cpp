// When plans use WMMA: on GPUs whose tensor cores support nothing else, and if requested; and mma.sync with
// sums in f16.
#include <gtest/gtest.h>

#include "cosmati/gemm/kernel.h"
#include "cosmati/gemm/policies.h"
#include "cosmati/ops/grouped_gemm.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/policies.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

constexpr DataType all_types[] = {DataType::f64,  DataType::tf32, DataType::f16,
                                  DataType::bf16, DataType::s8,   DataType::u8};

DataType result_of(DataType type) { return is_integer(type) ? DataType::s32 : type; }

GemmProblem square(DataType type, char const* letters, Index size = 2048) {
  return product(type, result_of(type), size, size, size, letters);
}

std::string complaint(GemmProblem const& problem, char const* gpu, PlanOptions const& options) {
  try {
    make_plan(problem, gpu_device(gpu), options);
  } catch (Error const& error) {
    return error.what();
  }
  return "accepted";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(WmmaChoice, IsWhatTuringHas) {
  for (char const* letters : {"nn", "tn"}) {
    auto const plan = make_plan(square(DataType::f16, letters), gpu_device("t4"));
    EXPECT_EQ(plan.kernel, "double_buffered");
    EXPECT_EQ(plan.recipe.policy.multiply, Multiply::wmma);
    EXPECT_EQ(plan.recipe.policy.epilogue, EpilogueSchedule::staged);
  }
  GemmProblem halves = square(DataType::f16, "tn");
  halves.accumulator = DataType::f16;
  EXPECT_EQ(make_plan(halves, gpu_device("t4")).recipe.policy.multiply, Multiply::wmma);
  EXPECT_EQ(make_plan(square(DataType::s8, "tn"), gpu_device("t4")).recipe.policy.multiply, Multiply::wmma);
  EXPECT_EQ(make_plan(square(DataType::bf16, "tn"), gpu_device("t4")).recipe.policy.multiply, Multiply::fma);
}

// A group is cut into the tiles of all its members: nothing is split along k, and the edges of the smaller
// member are checked although the largest extents are multiples of the tile.
TEST(WmmaChoice, IsTakenForTheMembersOfAGroup) {
  GroupedGemmProblem group;
  for (Index const size : {128, 100})
    group.members.push_back(product(DataType::f16, DataType::f16, size, size, 65536, "tn"));
  PlanOptions options;
  options.kernel = "double_buffered";
  auto const plan = make_plan(group, gpu_device("t4"), options);
  GemmPolicy const& policy = plan.recipe.policy;
  EXPECT_EQ(policy.multiply, Multiply::wmma);
  EXPECT_EQ(policy.partition, Partition::tiles);
  EXPECT_EQ(plan.recipe.splits, 1);
  EXPECT_FALSE(policy.full_tiles);
}

TEST(WmmaChoice, IsNeverFirstWhereMmaIs) {
  for (char const* gpu : {"a100", "rtx4090", "h200"})
    for (DataType type : all_types)
      for (char const* letters : {"nn", "nt", "tn", "tt"})
        EXPECT_NE(make_plan(square(type, letters), gpu_device(gpu)).recipe.policy.multiply, Multiply::wmma)
            << gpu << ' ' << name_of(type) << ' ' << letters;
}

TEST(WmmaChoice, IsTakenWhereItIsAskedFor) {
  PlanOptions options;
  options.policy = "multiply=wmma";
  for (char const* kernel : {"multistage", "double_buffered"})
    for (DataType type : all_types)
      for (char const* letters : {"nn", "nt", "tn", "tt"}) {
        options.kernel = kernel;
        auto const plan = make_plan(square(type, letters, 333), gpu_device("a100"), options);
        EXPECT_EQ(plan.kernel, kernel);
        EXPECT_EQ(plan.recipe.policy.multiply, Multiply::wmma);
      }
}

TEST(WmmaChoice, RefusalsGiveTheValues) {
  PlanOptions options;
  options.kernel = "multistage";
  options.policy = "multiply=wmma";
  GemmProblem mixed = square(DataType::s8, "tn");
  mixed.b.type = DataType::u8;
  EXPECT_HAS(complaint(mixed, "h200", options), "multiply wmma does not support s8 and u8 with sums in s32");
  EXPECT_HAS(complaint(square(DataType::e4m3, "tn"), "h200", options),
             "multiply wmma does not support e4m3 and e4m3 with sums in f32");
  options.policy = "multiply=wmma,epilogue=direct";
  EXPECT_HAS(complaint(square(DataType::f16, "tn"), "h200", options),
             "epilogue = direct; multiply wmma requires epilogue staged");
  options.policy = "multiply=wmma,warp_m=8,thread_m=1";
  EXPECT_HAS(complaint(square(DataType::f16, "tn"), "h200", options),
             "the warp tile is 8x64, the thread's 1x16");
  options.policy = "multiply=wmma";
  EXPECT_HAS(complaint(square(DataType::f16, "tn"), "t4", options), "cp.async needs compute capability 8.0");
  options.kernel = "double_buffered";
  EXPECT_HAS(complaint(square(DataType::bf16, "tn"), "t4", options),
             "multiply wmma of bf16 needs compute capability 8.0; NVIDIA T4 has 7.5");
}

TEST(MmaChoice, SumsInF16WhereItIsPredictedFasterThanHalf2) {
  GemmProblem problem = square(DataType::f16, "nn");
  problem.accumulator = DataType::f16;
  for (char const* gpu : {"a100", "rtx4090"}) {
    auto const plan = make_plan(problem, gpu_device(gpu));
    EXPECT_EQ(plan.recipe.policy.multiply, Multiply::mma) << gpu;
    EXPECT_EQ(plan.recipe.sum, DataType::f16);
    PlanOptions options;
    options.policy = "multiply=half2";
    auto const other = make_plan(problem, gpu_device(gpu), options);
    EXPECT_EQ(other.recipe.policy.multiply, Multiply::half2);
    EXPECT_LT(plan.recipe.predicted_seconds, other.recipe.predicted_seconds);
  }
}

// The shared memory computed on the host equals the size of the kernel's type.
template <class Element, class Sum, Along a, Along b, MainLoop main_loop>
void expect_bytes(char const* letters, DataType type, DataType sum) {
  PlanOptions options;
  options.kernel = name_of(main_loop);
  options.policy = "medium,multiply=wmma";
  GemmProblem problem = square(type, letters);
  problem.accumulator = sum;
  auto const plan = make_plan(problem, gpu_device("h200"), options);
  constexpr GemmPolicy policy =
      named_policy(PolicyName::medium, main_loop, Multiply::wmma,
                   is_same<Sum, f64> ? DataType::f64 : DataType::f32, static_cast<int>(sizeof(Element)));
  using Gemm = GemmTraits<policy, StridedSource<Element, a, 1>, StridedSource<Element, b, 1>, Sum,
                          IdentityEpilogue<Sum>, StridedDestination<Sum, 1>>;
  EXPECT_EQ(plan::shared_storage_bytes(plan.recipe, plan::canonical(problem)),
            static_cast<int>(sizeof(typename Gemm::SharedStorage)))
      << name_of(type) << ' ' << letters;
}

TEST(WmmaChoice, SharedBytesAreTheKernels) {
  constexpr Along outer = Along::mn, depth = Along::k;
  constexpr MainLoop multistage = MainLoop::multistage, buffered = MainLoop::double_buffered;
  // D is column-major, so that the kernel computes the transpose: its A is B.
  expect_bytes<f16, f32, depth, depth, multistage>("tn", DataType::f16, DataType::f32);
  expect_bytes<f16, f16, outer, outer, buffered>("nt", DataType::f16, DataType::f16);
  expect_bytes<tf32, f32, outer, depth, multistage>("tt", DataType::tf32, DataType::f32);
  expect_bytes<f64, f64, depth, outer, buffered>("nn", DataType::f64, DataType::f64);
  expect_bytes<s8, s32, outer, outer, multistage>("nt", DataType::s8, DataType::s32);
}

}  // namespace
}  // namespace cosmati
