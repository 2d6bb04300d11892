// Batches given by pointers, on every available backend: the same results as for a strided batch.
#include <gtest/gtest.h>

#include <cstring>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/gemm.h"
#include "tests/plan/gemm_problem.h"
#include "tests/support/complaint.h"

namespace cosmati {
namespace {

constexpr Index batch = 3, m = 5, n = 7, k = 11;

GemmProblem batched(DataType type) {
  GemmProblem problem;
  problem.a = describe(type, {batch, m, k});
  problem.b = describe(type, {batch, k, n});
  problem.c = describe(type, {batch, m, n});
  problem.d = describe(type, {batch, m, n});
  problem.epilogue.expression = epilogue::parse("store(pre, acc); acc + c + bias[batch, n]");
  problem.epilogue.operands = {describe(DataType::f32, {batch, n})};
  problem.epilogue.stores = {describe(type, {batch, m, n})};
  for (TensorDescription* tensor : {&problem.a, &problem.b, &problem.c, &problem.d})
    tensor->alignment = size_of(type);  // matrices of odd sizes follow one another
  return problem;
}

Tensor filled(TensorDescription const& description, int seed) {
  Tensor tensor(description);
  for (Index i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>((i * 7 + seed) % 9) - 4);
  return tensor;
}

std::vector<void const*> pointers_to(Tensor const& tensor) {
  std::vector<void const*> list;
  auto const bytes = tensor.layout().stride[0] * size_of(tensor.type());
  // In reverse order, which no stride could describe.
  for (Index i = 0; i < batch; ++i)
    list.push_back(static_cast<std::byte const*>(tensor.data()) + (batch - 1 - i) * bytes);
  return list;
}

void expect_same(Backend backend, DataType type) {
  GemmProblem const by_strides = batched(type);
  Tensor const a = filled(by_strides.a, 1), b = filled(by_strides.b, 2), c = filled(by_strides.c, 3);
  Tensor const bias = filled(by_strides.epilogue.operands[0], 4);
  Tensor d(by_strides.d), pre(by_strides.d), expected(by_strides.d), expected_pre(by_strides.d);
  void const* const operands[] = {bias.data()};

  GemmProblem problem = by_strides;
  problem.by_pointers = true;
  auto const prepared = prepare(make_plan(problem, this_device(backend)));
  auto const as = pointers_to(a), bs = pointers_to(b), cs = pointers_to(c), ds = pointers_to(d);
  void* const stores[] = {pre.data()};
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
  prepared.run({.a = as.data(),
                .b = bs.data(),
                .c = cs.data(),
                .d = const_cast<void const**>(ds.data()),
                .operands = operands,
                .scalars = {},
                .stores = stores},
               workspace.data());

  // Matrix i of the pointers is matrix batch - 1 - i in memory; the bias and the extra output are not
  // reversed.
  for (Index i = 0; i < batch; ++i)
    for (Index row = 0; row < m; ++row)
      for (Index column = 0; column < n; ++column) {
        double sum = 0;
        Index const at = batch - 1 - i;
        for (Index q = 0; q < k; ++q) sum += a.get((at * m + row) * k + q) * b.get((at * k + q) * n + column);
        EXPECT_EQ(pre.get((i * m + row) * n + column), sum);
        EXPECT_EQ(d.get((at * m + row) * n + column),
                  sum + c.get((at * m + row) * n + column) + bias.get(i * n + column));
      }
}

TEST(GemmPointers, GiveTheSameOnEveryBackend) {
  for (Backend backend : {Backend::reference, Backend::cpu, Backend::emulator})
    for (DataType type : {DataType::f32, DataType::f64, DataType::bf16}) expect_same(backend, type);
}

// Tensor maps that a kernel creates from the pointers: the rows of the matrices begin at multiples of 16
// bytes.
TEST(GemmPointers, ThroughTheCopyEngine) {
  constexpr Index matrices = 70, rows = 5, columns = 7, depth = 16;
  GemmProblem problem;
  problem.a = describe(DataType::bf16, {matrices, rows, depth});
  problem.b = {DataType::bf16, {{matrices, depth, columns}, {depth * columns, 1, depth}}};
  problem.d = describe(DataType::f32, {matrices, rows, columns});
  problem.d.alignment = 4;
  problem.by_pointers = true;
  PlanOptions options;
  options.kernel = "warp_specialized";
  auto const prepared = prepare(make_plan(problem, this_device(Backend::emulator), options));
  Tensor const a = filled(problem.a, 1), b = filled(problem.b, 2);
  Tensor d(problem.d), workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
  workspace.fill(255);
  std::vector<void const*> as, bs;
  std::vector<void*> ds;
  for (Index i = 0; i < matrices; ++i) {
    Index const other = matrices - 1 - i;
    as.push_back(static_cast<std::byte const*>(a.data()) + other * rows * depth * 2);
    bs.push_back(static_cast<std::byte const*>(b.data()) + i * depth * columns * 2);
    ds.push_back(static_cast<std::byte*>(d.data()) + i * rows * columns * 4);
  }
  prepared.run({.a = as.data(), .b = bs.data(), .d = ds.data()}, workspace.data());
  for (Index i = 0; i < matrices; ++i)
    for (Index m_ = 0; m_ < rows; ++m_)
      for (Index n_ = 0; n_ < columns; ++n_) {
        double sum = 0;
        for (Index q = 0; q < depth; ++q)
          sum += a.get(((matrices - 1 - i) * rows + m_) * depth + q) * b.get((i * depth + q) * columns + n_);
        ASSERT_EQ(d.get((i * rows + m_) * columns + n_), sum) << i << ' ' << m_ << ' ' << n_;
      }
}

TEST(GemmPointers, EachOneIsLookedAt) {
  GemmProblem problem = batched(DataType::f32);
  problem.epilogue = {};
  problem.c = {};
  problem.by_pointers = true;
  Tensor const a = filled(problem.a, 1), b = filled(problem.b, 2);
  Tensor d(problem.d);
  for (Backend const backend : {Backend::reference, Backend::cpu, Backend::emulator}) {
    auto const prepared = prepare(make_plan(problem, this_device(backend)));
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
    auto const error_of = [&](std::ptrdiff_t past, bool null) {
      auto as = pointers_to(a), bs = pointers_to(b), ds = pointers_to(d);
      as[1] = null ? nullptr : static_cast<std::byte const*>(as[1]) + past;
      try {
        prepared.run({.a = as.data(), .b = bs.data(), .d = const_cast<void const**>(ds.data())},
                     workspace.data());
      } catch (Error const& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    EXPECT_EQ(error_of(0, false), "");
    EXPECT_TRUE(error_of(0, true).starts_with("argument a[1] is null")) << error_of(0, true);
    EXPECT_TRUE(error_of(2, false).starts_with("argument a[1] is misaligned: 2 bytes past"))
        << error_of(2, false);
  }
}

TEST(GemmPointers, KernelsThatKnowStridesOnlyRefuse) {
  GemmProblem problem = batched(DataType::f32);
  problem.by_pointers = true;
  PlanOptions options;
  options.kernel = "openblas";
  try {
    make_plan(problem, this_device(Backend::cpu), options);
    FAIL() << "accepted";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("does not support arrays of pointers"), std::string::npos)
        << error.what();
  }
}

// 64 products of `rows` x `rows` with the given depth.
GemmProblem squares(Index rows, Index depth, std::string const& letters) {
  GemmProblem problem = testing::product(DataType::bf16, DataType::bf16, rows, rows, depth, letters);
  for (TensorDescription* tensor : {&problem.a, &problem.b, &problem.d}) tensor->layout.shape[0] = 64;
  problem.by_pointers = true;
  return problem;
}

// Half of the boxes of a cluster could lie beyond k.
TEST(GemmPointers, ClustersDoNotDivideAStepAlongK) {
  PlanOptions options;
  options.kernel = "warp_specialized";
  options.policy = "64x64_2x1";
  EXPECT_NE(
      testing::complaint_of([&] {
        make_plan(squares(512, 40, "nn"), testing::gpu_device("h200"), options);
      }).find("by pointers: 2 blocks share a step of a, and a part of the last may begin beyond k = 40"),
      std::string::npos);
  make_plan(squares(512, 64, "nn"), testing::gpu_device("h200"), options);
  options.policy = "128x128_2x1";
  make_plan(squares(512, 40, "nn"), testing::gpu_device("h200"), options);
}

// Not large_stores, whose alternating tiles have four stages and store buffers for whole tiles: tiles of
// 128x256 with a few store buffers do not wait for them.
TEST(GemmPointers, PoliciesOfBatches) {
  auto const policy_for = [](Index rows, Index depth) {
    return make_plan(squares(rows, depth, "tn"), testing::gpu_device("h200")).recipe.policy_name;
  };
  EXPECT_EQ(policy_for(1024, 1024), "huge");
  EXPECT_EQ(policy_for(512, 512), "huge");
}

}  // namespace
}  // namespace cosmati
