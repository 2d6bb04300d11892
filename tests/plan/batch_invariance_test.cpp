// Batch-invariant plans: the bits of a row, a matrix or an image do not depend on the batch
// (docs/decisions/0028-batch-invariance.md).
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "cosmati/ops/find.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/softmax.h"
#include "tests/plan/convolution_cases.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

PlanOptions const invariant{.batch_invariant = true};

// Irregular numbers that depend on the index and not on the extents. Sums in a different order have different
// bits.
double number(Index a, Index b, Index c) {
  auto const bits =
      static_cast<unsigned long long>(a * 7919 + b * 104729 + c * 1299709 + 12345) * 2654435761u;
  return static_cast<double>(bits >> 7 & 0xffff) / 32768.0 - 1.0;
}

// Element (i, j, k, l) of any tensor of up to four dimensions is number(i * 31 + j, k, l).
Tensor irregular(TensorDescription const& description) {
  Tensor tensor(description);
  Shape const shape = tensor.layout().shape;
  for (Index linear = 0; linear < shape.size(); ++linear) {
    Index at[4] = {}, rest = linear;
    for (int d = shape.rank - 1; d >= 0; --d) at[d] = rest % shape.extent[d], rest /= shape.extent[d];
    store(description.type, tensor.data(), tensor.layout().offset_of(at),
          number(at[0] * 31 + at[1], at[2], at[3]));
  }
  return tensor;
}

struct Made {
  std::string kernel;
  Tensor result;
};

Made computed(GemmProblem const& problem, Device const& device, PlanOptions const& options) {
  auto const plan = make_plan(problem, device, options);
  auto const prepared = prepare(plan);
  Tensor const a = irregular(problem.a), b = irregular(problem.b);
  Made made{plan.kernel, Tensor(problem.d)};
  std::vector<Tensor> operands;
  std::vector<void const*> pointers;
  for (TensorDescription const& operand : problem.epilogue.operands) operands.push_back(irregular(operand));
  for (Tensor const& operand : operands) pointers.push_back(operand.data());
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes()) + 1));
  GemmProblem::Arguments arguments;
  arguments.a = a.data(), arguments.b = b.data(), arguments.d = made.result.data();
  arguments.operands = pointers;
  prepared.run(arguments, workspace.data());
  return made;
}

std::string bits_of(Tensor const& tensor, Index offset) {
  auto const size = static_cast<std::size_t>(size_of(tensor.type()));
  return {static_cast<char const*>(static_cast<void const*>(tensor.data())) +
              static_cast<std::size_t>(offset) * size,
          size};
}

// The number of common elements whose bits differ.
Index differing(Tensor const& x, Tensor const& y) {
  Index count = 0;
  Layout const &first = x.layout(), &second = y.layout();
  Layout common = first;
  for (int d = 0; d < first.rank(); ++d) common.shape[d] = std::min(first.extent(d), second.extent(d));
  for (Index linear = 0; linear < common.size(); ++linear) {
    Index at[max_rank] = {}, rest = linear;
    for (int d = common.rank() - 1; d >= 0; --d) at[d] = rest % common.extent(d), rest /= common.extent(d);
    count += bits_of(x, first.offset_of(at)) != bits_of(y, second.offset_of(at));
  }
  return count;
}

GemmProblem row_major_product(DataType type, Index batch, Index m, Index n, Index k,
                              std::string const& expression) {
  GemmProblem problem = product(type, type, m, n, k, "tt", expression);
  for (TensorDescription* const tensor : {&problem.a, &problem.b, &problem.d})
    tensor->layout = row_major({batch, tensor->extent(1), tensor->extent(2)});
  return problem;
}

void expect_rows_kept(Device const& device, DataType type, std::vector<Index> const& rows, Index n, Index k,
                      std::string const& expression) {
  for (char const* const letters : {"nn", "tn", "nt"}) {
    Made const maximum =
        computed(product(type, type, rows.back(), n, k, letters, expression), device, invariant);
    for (Index const m : rows) {
      Made const made = computed(product(type, type, m, n, k, letters, expression), device, invariant);
      EXPECT_EQ(differing(made.result, maximum.result), 0)
          << name_of(type) << ' ' << letters << " m=" << m << " by " << made.kernel << " and "
          << maximum.kernel;
    }
  }
  Made const maximum = computed(row_major_product(type, 3, rows.back(), n, k, expression), device, invariant);
  for (Index const m : rows) {
    Made const made = computed(row_major_product(type, 1, m, n, k, expression), device, invariant);
    EXPECT_EQ(differing(made.result, maximum.result), 0) << name_of(type) << " a matrix of three, m=" << m;
  }
}

TEST(BatchInvariance, RowsOfProductsKeepTheirBitsOnTheHost) {
  Device const device = this_device(Backend::cpu);
  for (DataType const type : {DataType::f32, DataType::f64, DataType::bf16, DataType::f16})
    expect_rows_kept(device, type, {1, 2, 5, 64, 65, 130}, 70, 515, "gelu(acc + bias[n])");
  expect_rows_kept(device, DataType::f32, {1, 4, 9}, 1, 300, "acc");
}

TEST(BatchInvariance, RowsOfProductsKeepTheirBitsOnTheEmulator) {
  for (DataType const type : {DataType::f32, DataType::f16, DataType::bf16})
    expect_rows_kept(emulated_device(), type, {1, 3, 40, 70}, 24, 96, "tanh(acc + bias[n])");
}

// Without the option, host kernels for few rows exist, some of which add in another order.
TEST(BatchInvariance, TheDataTellOrdersApart) {
  auto const one = row_major_product(DataType::f32, 1, 8, 64, 4096, "acc");
  Device const device = this_device(Backend::cpu);
  PlanOptions exact;
  exact.kernel = "reference";
  EXPECT_GT(differing(computed(one, device, invariant).result, computed(one, device, exact).result), 100);
}

// Everything that determines the order in which an element is summed.
std::string order_of(Plan<GemmProblem> const& plan) {
  GemmRecipe const& recipe = plan.recipe;
  GemmPolicy const& p = recipe.policy;
  bool const by_wgmma = p.multiply == Multiply::wgmma;
  return std::string(name_of(p.multiply)) + ' ' + name_of(p.partition) + ' ' + std::to_string(recipe.splits) +
         ' ' + std::to_string(p.cluster_k) + ' ' + std::to_string(p.block_k) + ' ' +
         std::to_string(by_wgmma ? p.warp_n : 0) + (recipe.swapped ? " swapped" : "");
}

TEST(BatchInvariance, OnAGpuTheOrderOfSumsDoesNotFollowM) {
  for (char const* const gpu : {"h200", "a100", "t4"})
    for (DataType const type : {DataType::f16, DataType::bf16, DataType::f32, DataType::tf32, DataType::f64})
      for (char const* const letters : {"nn", "tn", "nt"}) {
        std::set<std::string> orders, free_orders;
        for (Index const m : {1, 2, 7, 8, 16, 33, 128, 500, 1024, 4096, 8192}) {
          auto const problem = product(type, type, m, 512, 8192, letters);
          auto const plan = make_plan(problem, gpu_device(gpu), invariant);
          EXPECT_TRUE(plan.batch_invariant);
          EXPECT_EQ(plan.recipe.policy.partition, Partition::tiles);
          EXPECT_EQ(plan.recipe.policy.cluster_k, 1);
          orders.insert(order_of(plan));
          free_orders.insert(order_of(make_plan(problem, gpu_device(gpu))));
        }
        EXPECT_EQ(orders.size(), 1u) << gpu << ' ' << name_of(type) << ' ' << letters << ' '
                                     << *orders.begin() << " and " << *orders.rbegin();
        EXPECT_GT(free_orders.size(), 1u) << gpu << ' ' << name_of(type) << ' ' << letters;
      }
}

TEST(BatchInvariance, ImagesKeepTheirBits) {
  for (Device const& device : {this_device(Backend::cpu), emulated_device()})
    for (DataType const type : {DataType::f32, DataType::f16})
      for (ConvolutionDirection const direction : {ConvolutionDirection::forward, ConvolutionDirection::data})
        for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc}) {
          Geometry g;
          g.c = 16, g.k = 24, g.stride[1] = 2;
          std::vector<Tensor> results;
          for (Index const images : {1, 2, 5}) {
            g.n = images;
            auto const problem = problem_of(direction, type, type, format, g);
            auto const plan = make_plan(problem, device, invariant);
            EXPECT_EQ(plan.kernel, device.backend == Backend::cpu ? "image_slices" : "implicit_gemm");
            auto const prepared = prepare(plan);
            Tensor const x = irregular(problem.x), w = irregular(problem.w), y = irregular(problem.y);
            bool const forward = direction == ConvolutionDirection::forward;
            results.emplace_back(forward ? problem.y : problem.x);
            ConvolutionProblem::Arguments arguments;
            arguments.x = x.data(), arguments.w = w.data(), arguments.dy = y.data();
            (forward ? arguments.y : arguments.dx) = results.back().data();
            Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes()) + 1));
            prepared.run(arguments, workspace.data());
          }
          for (Tensor const& result : results)
            EXPECT_EQ(differing(result, results.back()), 0)
                << name_of(device.backend) << ' ' << name_of(type) << ' ' << static_cast<int>(direction)
                << ' ' << result.layout().extent(0) << " images";
        }
}

TEST(BatchInvariance, RowsOfASoftmaxKeepTheirBits) {
  std::vector<Tensor> results;
  for (Index const rows : {1, 3, 200}) {
    SoftmaxProblem problem;
    problem.x = problem.y = describe(DataType::f32, Shape(rows, 77));
    Tensor const x = irregular(problem.x);
    results.emplace_back(problem.y);
    auto const prepared = prepare(make_plan(problem, this_device(Backend::cpu), invariant));
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes()) + 1));
    SoftmaxProblem::Arguments arguments;
    arguments.x = x.data(), arguments.y = results.back().data();
    prepared.run(arguments, workspace.data());
  }
  for (Tensor const& result : results) EXPECT_EQ(differing(result, results.back()), 0);
}

template <class Problem>
std::string refusal_of(Problem const& problem, Device const& device, PlanOptions const& options) {
  try {
    return make_plan(problem, device, options).kernel;
  } catch (Error const& error) {
    return error.what();
  }
}

TEST(BatchInvariance, WhatSumsOverTheBatchIsRefused) {
  Geometry const g;
  for (Device const& device :
       {this_device(Backend::cpu), emulated_device(), this_device(Backend::reference)}) {
    auto const filter =
        problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, TensorFormat::nchw, g);
    EXPECT_EQ(refusal_of(filter, device, invariant).find("a filter's gradient is a sum over the batch"), 0u);
  }
  BatchNormProblem training;
  training.mode = BatchNormMode::training;
  training.x = training.y = describe(DataType::f32, Shape(4, 3, 5, 5));
  training.statistics = describe(DataType::f32, Shape(3));
  EXPECT_NE(refusal_of(training, this_device(Backend::cpu), invariant).find("over the batch"),
            std::string::npos);
}

std::string said_of(Plan<GemmProblem> const& plan, std::string const& kernel) {
  return entry_of(plan.considered, kernel).refusal;
}

TEST(BatchInvariance, RefusalsAreSentences) {
  auto const problem = product(DataType::f16, DataType::f16, 64, 64, 4096, "tn");
  auto const plan = make_plan(problem, gpu_device("h200"), invariant);
  EXPECT_EQ(plan.kernel, "warp_specialized");
  EXPECT_EQ(said_of(plan, "multistage"),
            "does not use multiply wgmma, which batch-invariant plans use for f16 and f16 for every m");
  PlanOptions split = invariant;
  split.policy = "partition=split_k";
  EXPECT_NE(refusal_of(problem, gpu_device("h200"), split).find("sums parts of k separately"),
            std::string::npos);
  auto const host = make_plan(problem, this_device(Backend::cpu), invariant);
  EXPECT_EQ(host.kernel, "in_order");
  EXPECT_EQ(said_of(host, "openblas").find("is not batch-invariant"), 0u);
  FindOptions find_options;
  find_options.plan = invariant;
  EXPECT_THROW((void)find(problem, this_device(Backend::cpu), find_options), Error);
}

}  // namespace
}  // namespace cosmati
