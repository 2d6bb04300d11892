// The kernel warp_specialized as a candidate of the backend emulator: what it computes, copies first, splits
// and refuses.
#include <gtest/gtest.h>

#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::product;

Device emulator(char const* gpu = "h200") {
  Device device = this_device(Backend::emulator);
  device.gpu = describe_gpu(gpu);
  return device;
}

Plan<GemmProblem> plan_of(GemmProblem const& problem, Device const& device = emulator()) {
  PlanOptions options;
  options.kernel = "warp_specialized";
  return make_plan(problem, device, options);
}

std::string refusal_of(GemmProblem const& problem, Device const& device = emulator()) {
  for (Considered const& entry : make_plan(problem, device).considered)
    if (entry.kernel == "warp_specialized") return entry.refusal;
  return "not considered";
}

Tensor filled(TensorDescription const& description, Index seed) {
  Tensor tensor(description);
  for (Index i = 0; i < tensor.layout().span(); ++i)
    store(description.type, tensor.data(), i, static_cast<double>((i * 7 + seed) % 4));
  return tensor;
}

void run(Plan<GemmProblem> const& plan, Tensor const& a, Tensor const& b, Tensor& d) {
  auto const prepared = prepare(plan);
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
  prepared.run({.a = a.data(), .b = b.data(), .d = d.data()}, workspace.data());
}

// Small integers: every sum is exact in every type.
void expect_right(GemmProblem const& problem) {
  Tensor const a = filled(problem.a, 1), b = filled(problem.b, 2);
  Tensor d(problem.d), expected(problem.d);
  Plan<GemmProblem> const plan = plan_of(problem);
  EXPECT_EQ(plan.kernel, "warp_specialized");
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
      expect_right(product(types.operands, types.result, 71, 33, 50, letters));  // copied first
    }
}

TEST(EmulatedWarpSpecialized, DeepProductsAreSplit) {
  GemmProblem const deep = product(DataType::bf16, DataType::f32, 64, 32, 4096, "tn");
  EXPECT_GT(plan_of(deep).recipe.splits, 1);
  expect_right(deep);
}

TEST(EmulatedWarpSpecialized, RefusalsGiveTheReason) {
  EXPECT_EQ(refusal_of(product(DataType::bf16, DataType::bf16, 64, 64, 64, "tn")), "");
  EXPECT_EQ(refusal_of(product(DataType::f32, DataType::f32, 64, 64, 64, "tn")),
            "multiply wgmma takes no f32 and f32 with sums in f32");
  EXPECT_EQ(refusal_of(product(DataType::bf16, DataType::bf16, 64, 64, 64, "tn"), emulator("a100")),
            "wgmma needs compute capability 9.0; " + describe_gpu("a100").name + " has 8.0");
  GemmProblem pointers = product(DataType::bf16, DataType::bf16, 64, 64, 64, "tn");
  pointers.by_pointers = true;
  EXPECT_EQ(refusal_of(pointers), "takes no arrays of pointers");
}

}  // namespace
}  // namespace cosmati
