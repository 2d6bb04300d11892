// Properties of plans: reasons for rejections, limits, reproducible bits, and one prepared kernel on many
// threads.
#include <thread>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/processor.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

using test::Choice;
using test::same_bytes;
using test::Trial;

Device cpu(int threads = 2) { return this_device(Backend::cpu, threads); }

GemmProblem product(DataType type, Index m, Index n, Index k) {
  GemmProblem problem;
  problem.a = describe(type, Shape{1, m, k});
  problem.b = describe(type, Shape{1, k, n});
  problem.d = describe(type, Shape{1, m, n});
  problem.epilogue.expression = epilogue::parse("gelu(acc + bias[n])");
  problem.epilogue.operands = {describe(DataType::f32, Shape{n})};
  return problem;
}

GemmProblem tiled_product() {
  auto problem = product(DataType::f32, 530, 300, 17);
  problem.epilogue.expression = epilogue::parse("relu(acc + bias[n])");
  return problem;
}

ConvolutionProblem convolution(ConvolutionDirection direction) {
  ConvolutionProblem p;
  p.direction = direction;
  p.x = describe(DataType::f32, Shape{4, 6, 14, 14});
  p.w = describe(DataType::f32, Shape{16, 6, 5, 5});
  p.y = describe(DataType::f32, Shape{4, 16, 10, 10});
  return p;
}

std::string refusal_of(std::vector<Considered> const& considered, std::string const& kernel) {
  for (auto const& entry : considered)
    if (entry.kernel == kernel) return entry.refusal;
  return "there is no such kernel";
}

template <class Problem>
std::string message_of(Problem const& problem, PlanOptions const& options) {
  try {
    make_plan(problem, cpu(), options);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_request);
    return error.what();
  }
  return "accepted";
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Planning, RefusalsNameThePredicateTheValueAndWhatIsLegal) {
  auto problem = product(DataType::f32, 8, 8, 8);
  auto plan = make_plan(problem, cpu());
  EXPECT_EQ(plan.kernel, "onednn_matmul");
  EXPECT_CONTAINS(refusal_of(plan.considered, "openblas"), "f32, f32 and f32; all three must be f64");
  EXPECT_CONTAINS(refusal_of(plan.considered, "onednn_sgemm"), "it must be alpha*acc + beta*c");
  EXPECT_CONTAINS(refusal_of(plan.considered, "converted"), "nothing to convert");
  EXPECT_EQ(refusal_of(plan.considered, "reference"), "");
  EXPECT_CONTAINS(message_of(problem, {.kernel = "openblas"}),
                  "does not support this problem: a, b and d are f32");
  EXPECT_CONTAINS(message_of(problem, {.kernel = "magic"}),
                  "openblas, onednn_sgemm, onednn_tiled, onednn_matmul");
}

TEST(Planning, ADeviceThatIsNotHereIsPlannedFor) {
  auto const plan = make_plan(product(DataType::bf16, 8, 8, 8), describe_processor("avx2-laptop"));
  EXPECT_CONTAINS(refusal_of(plan.considered, "onednn_matmul"),
                  "need AVX-512 BF16, which this processor lacks");
  EXPECT_EQ(plan.kernel, "converted");
}

TEST(Planning, TheWorkspaceIsLimited) {
  auto const problem = product(DataType::f16, 100, 100, 100);
  auto const plan = make_plan(problem, cpu());
  EXPECT_EQ(plan.kernel, "converted");
  EXPECT_GE(plan.workspace_bytes, std::size_t{3 * 100 * 100 * 4});
  auto const small = make_plan(problem, cpu(), {.max_workspace = 1000});
  EXPECT_EQ(small.kernel, "reference");
  EXPECT_CONTAINS(refusal_of(small.considered, "converted"), "at most 1000");
}

TEST(Planning, MissingArgumentsAreRefusedBeforeAnythingRuns) {
  auto const problem = product(DataType::f32, 8, 8, 8);
  auto const prepared = prepare(make_plan(problem, cpu()));
  std::vector<float> matrix(64);
  GemmProblem::Arguments arguments;
  arguments.a = arguments.b = matrix.data();
  EXPECT_THROW(prepared.run(arguments), Error);  // d is missing
  arguments.d = matrix.data();
  EXPECT_THROW(prepared.run(arguments), Error);  // the bias is missing
}

template <class Problem>
void expect_same_bits_from_many_threads(Problem const& problem, int threads, char const* kernel = "") {
  auto const prepared = prepare(make_plan(problem, cpu(threads), {.kernel = kernel}));
  SCOPED_TRACE(prepared.plan().kernel);
  Trial<Problem> trial(problem, 5);
  auto const first = trial.run(prepared);
  EXPECT_TRUE(same_bytes(first, trial.run(prepared)));
  std::vector<std::thread> callers;
  std::vector<int> same(8, 0);
  for (std::size_t i = 0; i < same.size(); ++i)
    callers.emplace_back([&, i] {
      Trial<Problem> own(problem, 5);
      same[i] = 1;
      for (int repetition = 0; repetition < 10; ++repetition)
        if (!same_bytes(first, own.run(prepared))) same[i] = 0;
    });
  for (auto& caller : callers) caller.join();
  for (int one : same) EXPECT_EQ(one, 1);
}

TEST(Planning, OnePreparedKernelRunsOnManyThreadsAtOnceWithTheSameBits) {
  for (int threads : {1, 2}) {
    expect_same_bits_from_many_threads(product(DataType::f32, 65, 70, 33), threads);
    expect_same_bits_from_many_threads(product(DataType::f64, 65, 70, 33), threads);
    expect_same_bits_from_many_threads(product(DataType::f16, 65, 70, 33), threads);
    expect_same_bits_from_many_threads(tiled_product(), threads, "onednn_tiled");
    for (auto direction :
         {ConvolutionDirection::forward, ConvolutionDirection::data, ConvolutionDirection::filter})
      expect_same_bits_from_many_threads(convolution(direction), threads);
    ReduceProblem sum{ReduceOperation::sum, describe(DataType::f32, Shape{300, 100}),
                      describe(DataType::f32, Shape{1, 1})};
    expect_same_bits_from_many_threads(sum, threads);
  }
}

TEST(Planning, EveryNumberOfThreadsGivesTheResult) {
  for (int threads : {1, 2, 3, 5}) {
    Trial(product(DataType::f32, 130, 70, 33), 1).expect_close(cpu(threads), {.terms = 40, .absolute = 2e-6});
    Trial(product(DataType::f64, 130, 70, 33), 1)
        .expect_close(cpu(threads), {.terms = 40, .absolute = 1e-14});
    for (auto direction :
         {ConvolutionDirection::forward, ConvolutionDirection::data, ConvolutionDirection::filter}) {
      auto problem = convolution(direction);
      Trial(problem, 1).expect_close(cpu(threads), {.terms = 100});
      for (auto* t : {&problem.x, &problem.w, &problem.y}) t->type = DataType::f64;
      Trial(problem, 1).expect_close(cpu(threads), {.terms = 100});
    }
  }
}

}  // namespace
}  // namespace cosmati
