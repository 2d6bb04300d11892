// find: the candidates that it measures, their order, and the limits.
#include "cosmati/ops/find.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/softmax.h"
#include "tests/support/complaint.h"

namespace cosmati {
namespace {

using testing::complaint_of;

Device host(Backend backend = Backend::cpu) { return this_device(backend, 1); }

GemmProblem product(DataType type, Index size) {
  GemmProblem problem;
  problem.a = problem.b = problem.d = describe(type, Shape(2, size, size));
  return problem;
}

template <class Problem>
void expect_in_order(std::vector<Found<Problem>> const& found) {
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end(),
                             [](auto const& x, auto const& y) { return x.seconds < y.seconds; }));
  for (auto const& one : found) EXPECT_GT(one.seconds, 0) << one.prepared.plan().kernel;
}

template <class Problem>
std::size_t accepting(Problem const& problem, Device const& device) {
  auto const considered = make_plan(problem, device).considered;
  return static_cast<std::size_t>(std::count_if(considered.begin(), considered.end(), [](auto const& entry) {
    return entry.refusal.empty() && entry.kernel != "reference";
  }));
}

TEST(Find, MeasuresEachThatAccepts) {
  ConvolutionProblem problem;
  problem.x = problem.y = describe(DataType::f32, Shape(2, 8, 12, 12));
  problem.w = describe(DataType::f32, Shape(8, 8, 3, 3));
  for (int i = 0; i < 2; ++i) problem.pad_begin[i] = problem.pad_end[i] = 1;
  if (accepting(problem, host()) < 2) GTEST_SKIP() << "there is one way only without oneDNN";
  auto const found = find(problem, host(), {.seconds = 0.002});
  EXPECT_EQ(found.size(), accepting(problem, host()));
  EXPECT_GE(found.size(), 2U);
  expect_in_order(found);
}

TEST(Find, TheNaiveLoopsOnRequestOrAlone) {
  GemmProblem const problem = product(DataType::f32, 32);
  if (accepting(problem, host()) == 0) GTEST_SKIP() << "there is nothing else without oneDNN";
  auto const plain = find(problem, host(), {.seconds = 0.001});
  auto const all = find(problem, host(), {.seconds = 0.001, .reference = true});
  EXPECT_EQ(all.size(), plain.size() + 1);
  expect_in_order(all);
  EXPECT_NE(all.front().prepared.plan().kernel, "reference");
  auto const alone = find(problem, host(Backend::reference), {.seconds = 0.001});
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone.front().prepared.plan().kernel, "reference");
}

TEST(Find, WithinALimitOfWorkspace) {
  GemmProblem problem = product(DataType::f32, 48);
  problem.a.layout.stride[1] = 51;
  problem.a.layout.stride[0] = 48 * 51;
  for (std::size_t const limit : {std::size_t{0}, ~std::size_t{0}})
    for (auto const& one : find(problem, host(), {.plan = {.max_workspace = limit}, .seconds = 0.001}))
      EXPECT_LE(one.prepared.workspace_bytes(), limit) << one.prepared.plan().kernel;
  auto const one = find(problem, host(), {.plan = {.kernel = "reference"}, .seconds = 0.001});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one.front().prepared.plan().kernel, "reference");
  EXPECT_NE(complaint_of([&] { find(problem, host(), {.plan = {.kernel = "magic"}}); }).find("'magic'"),
            std::string::npos);
}

// Arguments of every kind: pointers, operands, scalars, stores; labels within the range of the classes.
TEST(Find, MakesDataOfEveryKind) {
  GemmProblem problem = product(DataType::f32, 16);
  problem.by_pointers = true;
  problem.epilogue = {epilogue::parse("store(before, acc); scale*acc + bias[n]"),
                      {describe(DataType::f32, Shape(16))},
                      {problem.d}};
  for (Backend const backend : {Backend::cpu, Backend::emulator, Backend::reference})
    expect_in_order(find(problem, host(backend), {.seconds = 0.001}));
  CrossEntropyProblem loss;
  loss.x = loss.dx = describe(DataType::f32, Shape(6, 10));
  loss.labels = describe(DataType::s32, Shape(6));
  loss.loss = describe(DataType::f32, Shape(1));
  expect_in_order(find(loss, host(), {.seconds = 0.001}));
}

}  // namespace
}  // namespace cosmati
