// Matrix products with hand-computed results, in every layout; the fully connected layer and its gradients.
#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/fully_connected.h"
#include "reference/reference.h"
#include "tests/support/gradient_check.h"
#include "tests/support/random.h"
#include "tests/support/tensors.h"

namespace cosmati {
namespace {

using testing::poisoned;
using testing::Random;
using testing::tensor;
using testing::Values;
using testing::values_of;

GemmProblem problem_of(TensorDescription const& a, TensorDescription const& b, TensorDescription const& d) {
  GemmProblem problem;
  problem.a = a;
  problem.b = b;
  problem.d = d;
  return problem;
}

void run(GemmProblem const& problem, Tensor const& a, Tensor const& b, Tensor& d) {
  validate(problem);
  reference::run(problem, {.a = a.data(), .b = b.data(), .d = d.data()});
}

TEST(ReferenceGemm, ByHand) {
  Tensor const a = tensor({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor const b = tensor({1, 3, 2}, {7, 8, 9, 10, 11, 12});
  Tensor d = poisoned({1, 2, 2});
  run(problem_of(a.description(), b.description(), d.description()), a, b, d);
  EXPECT_EQ(values_of(d), (Values{58, 64, 139, 154}));
}

TEST(ReferenceGemm, EveryLayoutGivesTheSame) {
  Random random(1);
  Tensor const a = random.tensor({2, 3, 5}), b = random.tensor({2, 5, 4});
  Tensor expected = poisoned({2, 3, 4});
  run(problem_of(a.description(), b.description(), expected.description()), a, b, expected);
  for (int i = 0; i < 10; ++i) {
    Tensor const other_a = copy(a, describe(DataType::f64, random.layout(a.shape())));
    Tensor const other_b = copy(b, describe(DataType::f64, random.layout(b.shape())));
    Tensor d(describe(DataType::f64, random.layout(expected.shape())));
    run(problem_of(other_a.description(), other_b.description(), d.description()), other_a, other_b, d);
    EXPECT_EQ(values_of(d), values_of(expected));
  }
}

TEST(ReferenceGemm, SharedOperandHasBatchStrideZero) {
  Tensor const a = tensor({3, 1, 1}, {1, 2, 3});
  Tensor const b = tensor({1}, {10});
  Tensor d = poisoned({3, 1, 1});
  TensorDescription const shared{DataType::f64, {{3, 1, 1}, {0, 1, 1}}};
  run(problem_of(a.description(), shared, d.description()), a, b, d);
  EXPECT_EQ(values_of(d), (Values{10, 20, 30}));
}

TEST(ReferenceGemm, IntegersAreExact) {
  Index const k = 200000;
  Tensor a(DataType::s8, {1, 1, k}), b(DataType::s8, {1, k, 1});
  a.fill(-128);
  b.fill(127);
  Tensor d = poisoned({1, 1, 1}), saturated = poisoned({1, 1, 1}, DataType::s32);
  run(problem_of(a.description(), b.description(), d.description()), a, b, d);
  EXPECT_EQ(d.get(0), -128.0 * 127 * static_cast<double>(k));
  run(problem_of(a.description(), b.description(), saturated.description()), a, b, saturated);
  EXPECT_EQ(saturated.get(0), -2147483648.0);

  Tensor const large = tensor({1, 1, 3}, {2147483647, 1, -2147483647}, DataType::s32);
  Tensor const factor = tensor({1, 3, 1}, {2147483647, 3, 2147483647}, DataType::s32);
  run(problem_of(large.description(), factor.description(), d.description()), large, factor, d);
  EXPECT_EQ(d.get(0), 3);  // a sum in double would lose it
}

TEST(ReferenceGemm, WithoutDepthTheAccumulatorIsZero) {
  Tensor const a(DataType::f32, {1, 2, 0}), b(DataType::f32, {1, 0, 2});
  Tensor d = poisoned({1, 2, 2});
  GemmProblem problem = problem_of(a.description(), b.description(), d.description());
  problem.epilogue.expression = epilogue::parse("acc + 1");
  run(problem, a, b, d);
  EXPECT_EQ(values_of(d), (Values{1, 1, 1, 1}));
}

TEST(ReferenceGemm, EpilogueReadsOperandsByTheirIndices) {
  Tensor const a = tensor({2, 2, 1}, {1, 2, 3, 4}), b = tensor({2, 1, 2}, {1, 10, 1, 10});
  Tensor const c = tensor({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  Tensor const rows = tensor({2}, {100, 200}), columns = tensor({2}, {1000, 2000});
  Tensor const whole = tensor({2, 2}, {1e6, 2e6, 3e6, 4e6});  // (n, m)
  Tensor const batch = tensor({2}, {1e7, 2e7});
  Tensor d = poisoned({2, 2, 2}), doubled = poisoned({2, 2, 2});
  GemmProblem problem = problem_of(a.description(), b.description(), d.description());
  problem.c = c.description();
  problem.epilogue.expression = epilogue::parse(
      "store(doubled, acc * 2); alpha*acc + beta*c + rows[m] + columns[n] + whole[n, m] + "
      "batches[batch]");
  Tensor const* const tensors[] = {&rows, &columns, &whole, &batch};
  char const* const names[] = {"rows", "columns", "whole", "batches"};
  std::vector<void const*> operands;
  for (auto const& operand : problem.epilogue.expression.operands())
    for (std::size_t i = 0; i < 4; ++i)
      if (operand.name == names[i]) {
        problem.epilogue.operands.push_back(tensors[i]->description());
        operands.push_back(tensors[i]->data());
      }
  problem.epilogue.stores = {doubled.description()};
  std::vector<double> scalars;
  for (auto const& scalar : problem.epilogue.expression.scalars())
    scalars.push_back(scalar.name == "alpha" ? 1 : 10);
  void* const stores[] = {doubled.data()};
  validate(problem);
  GemmProblem::Arguments arguments{.a = a.data(),
                                   .b = b.data(),
                                   .c = c.data(),
                                   .d = d.data(),
                                   .operands = operands,
                                   .scalars = scalars,
                                   .stores = stores};
  reference::run(problem, arguments);
  EXPECT_EQ(values_of(doubled), (Values{2, 20, 4, 40, 6, 60, 8, 80}));
  EXPECT_EQ(values_of(d),
            (Values{11001111, 13002130, 12001232, 14002260, 21001153, 23002190, 22001274, 24002320}));

  arguments.scalars = {};
  EXPECT_THROW(reference::run(problem, arguments), Error);
  arguments.scalars = scalars;
  arguments.operands = arguments.operands.first(3);
  EXPECT_THROW(reference::run(problem, arguments), Error);
}

TEST(ReferenceGemm, AccumulatorType) {
  EXPECT_EQ(accumulator_type(DataType::s8, DataType::u8), DataType::s32);
  EXPECT_EQ(accumulator_type(DataType::s8, DataType::f32), DataType::f32);
  EXPECT_EQ(accumulator_type(DataType::f16, DataType::f64), DataType::f64);
  EXPECT_EQ(accumulator_type(DataType::tf32, DataType::tf32), DataType::f32);
}

TEST(FullyConnected, ByHandWithBias) {
  Tensor const x = tensor({2, 3}, {1, 2, 3, 4, 5, 6}), w = tensor({2, 3}, {1, 0, 0, 0, 1, 1});
  Tensor const bias = tensor({2}, {100, 200});
  Tensor y = poisoned({2, 2});
  GemmProblem const problem =
      fully_connected_forward(x.description(), w.description(), y.description(),
                              {epilogue::parse("acc + bias[n]"), {bias.description()}, {}});
  validate(problem);
  void const* const operands[] = {bias.data()};
  reference::run(problem, {.a = x.data(), .b = w.data(), .d = y.data(), .operands = operands});
  EXPECT_EQ(values_of(y), (Values{101, 205, 104, 211}));
}

TEST(FullyConnected, Gradients) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    Random random(seed);
    Index const n = random.between(1, 4), inputs = random.between(1, 5), outputs = random.between(1, 5);
    Tensor x = random.tensor({n, inputs}), w = random.tensor({outputs, inputs});
    Tensor y = random.tensor({n, outputs}), dy = random.tensor({n, outputs});
    Tensor dx = random.tensor({n, inputs}), dw = random.tensor({outputs, inputs});
    auto const loss = [&] {
      run(fully_connected_forward(x.description(), w.description(), y.description(), {}), x, w, y);
      return testing::weighted_sum(dy, y);
    };
    run(fully_connected_data(dy.description(), w.description(), dx.description()), dy, w, dx);
    testing::expect_gradient("dx", x, dx, loss);
    run(fully_connected_filter(dy.description(), x.description(), dw.description()), dy, x, dw);
    testing::expect_gradient("dw", w, dw, loss);
  }
}

}  // namespace
}  // namespace cosmati
