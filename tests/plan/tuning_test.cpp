// Tuning files: which problems belong to one class, what a line must contain, which of two lines is kept, and
// plans that use one.
#include "cosmati/ops/tuning.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <limits>

#include "src/plan/built_in_tuning.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/tuning.h"
#include "src/plan/gemm/tuning_candidates.h"
#include "tests/plan/gemm_problem.h"

namespace cosmati {
namespace {

using testing::gpu_device;
using testing::product;

GemmProblem large(Index m = 4096) { return product(DataType::bf16, DataType::bf16, m, 4096, 4096, "tn"); }

TuningLine line_for(GemmProblem const& problem, std::string const& kernel = "multistage") {
  TuningLine line;
  line.problems = plan::gemm_class(problem, "");
  line.gpu = tuning_name(gpu_device("h200").gpu);
  line.kernel = kernel;
  GemmPolicy policy;
  policy.block_k = 32;
  policy.warp_m = policy.warp_n = 64;
  policy.thread_n = 16;
  policy.stages = 4;
  policy.multiply = Multiply::mma;
  line.policy = plan::text_of(policy);
  line.measured = "4096x4096x4096x1";
  line.seconds = 2e-4;
  line.planned_seconds = 3e-4;
  line.driver = "CUDA 13.0, 580.1";
  line.version = "cosmati 0.1.0";
  line.time = "2026-01-31T23:59:59Z";
  return line;
}

std::string replaced(std::string text, std::string const& old, std::string const& by) {
  std::size_t const at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old << " in " << text;
  return at == std::string::npos ? text : text.replace(at, old.size(), by);
}

PlanOptions with(std::string const& text) {
  PlanOptions options;
  options.tuning = std::make_shared<TuningTable const>(TuningTable::parse(text, "tuning.txt"));
  return options;
}

TEST(Tuning, OneClassIsWhatIsCutIntoTheSameTiles) {
  EXPECT_EQ(plan::gemm_class(large(), ""),
            "gemm a=bf16/k8 b=bf16/k8 c=none d=bf16/8 sum=f32 epilogue=light m=4096 n=4096 k=4096 batch=1");
  auto const same = [](GemmProblem const& x, GemmProblem const& y) {
    return plan::gemm_class(x, "") == plan::gemm_class(y, "");
  };
  EXPECT_TRUE(same(large(4096), large(4040)));
  EXPECT_FALSE(same(large(4096), large(4032)));
  EXPECT_TRUE(same(large(24), large(32)));
  EXPECT_FALSE(same(large(8), large(16))) << "gemv reads the other operand again for more rows";
  EXPECT_FALSE(same(large(16), large(32)));
  EXPECT_FALSE(same(large(4096), large(4095))) << "its columns are not aligned";
  EXPECT_FALSE(same(large(), product(DataType::bf16, DataType::bf16, 4096, 4096, 4096, "nt")));
  EXPECT_FALSE(same(large(), product(DataType::f16, DataType::f16, 4096, 4096, 4096, "tn")));
  EXPECT_EQ(plan::gemm_class(large(0), ""), "");
  EXPECT_EQ(plan::gemm_class(large(), "multistage"), plan::gemm_class(large(), "") + " only=multistage");
}

TEST(Tuning, ALineIsReadAsItIsWritten) {
  TuningTable table;
  TuningLine odd = line_for(large(100));
  odd.driver = "a \"quoted\" name";
  odd.version.clear();
  table.add(line_for(large()));
  table.add(odd);
  TuningTable const again = TuningTable::parse(table.text(), "tuning.txt");
  EXPECT_EQ(again.size(), 2U);
  EXPECT_EQ(again.text(), table.text());
  TuningLine const* const line = again.find(line_for(large()).problems, odd.gpu);
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(line->origin, "tuning.txt, line 4");
  EXPECT_EQ(to_string(*line), to_string(line_for(large())));
  EXPECT_EQ(TuningTable::parse("", "tuning.txt").size(), 0U);
  EXPECT_EQ(TuningTable::parse("# nothing\n\n \r\n", "tuning.txt").size(), 0U);
}

TEST(Tuning, NoExtentOverflows) {
  EXPECT_EQ(plan::extent_of_class(65), 128);
  EXPECT_EQ(plan::extent_of_class(128), 128);
  constexpr Index largest = std::numeric_limits<Index>::max();
  EXPECT_EQ(plan::extent_of_class(largest), largest / 64 * 64);
  EXPECT_EQ(plan::extent_of_class(largest / 64 * 64), largest / 64 * 64);
}

TEST(Tuning, AnOldLineAppliesToTheExtentsItMeasured) {
  TuningLine line = line_for(large(1));
  line.measured = "1x4096x4096x1";
  std::string const text = replaced(to_string(line), " m=1 ", " m=16 ");
  TuningTable const table = TuningTable::parse(text + '\n', "tuning.txt");
  EXPECT_NE(table.find(line.problems, line.gpu), nullptr);
  EXPECT_EQ(table.find(line_for(large(16)).problems, line.gpu), nullptr);

  // The extents of the product as the caller wrote it, of which the kernel computes the transposed one.
  TuningLine exchanged = line;
  exchanged.measured = "4096x1x4096x1";
  std::string const old = replaced(to_string(exchanged), " m=1 ", " m=16 ");
  EXPECT_NE(TuningTable::parse(old + '\n', "tuning.txt").find(line.problems, line.gpu), nullptr);

  TuningLine shallow = line_for(product(DataType::bf16, DataType::bf16, 4096, 4096, 8, "tn"));
  shallow.measured = "4096x4096x8x1";
  std::string const deeper = replaced(to_string(shallow), " k=8 ", " k=16 ");
  EXPECT_NE(TuningTable::parse(deeper + '\n', "tuning.txt").find(shallow.problems, line.gpu), nullptr);
}

TEST(Tuning, WhatIsNoLineIsToldWithItsNumber) {
  std::string const good = to_string(line_for(large()));
  auto const complaint = [](std::string const& line) -> std::string {
    try {
      (void)TuningTable::parse("# head\n" + line + "\n", "tuning.txt");
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint(good), "");
  EXPECT_EQ(complaint("pool m=3"),
            "tuning.txt, line 2: a line begins with its operation, gemm or conv, not 'pool'");
  struct Case {
    char const *old, *by, *complaint;
  };
  for (Case const& c : {
           Case{" splits=1", "", "the key splits is missing"},
           {" splits=1", " splits=0", "splits=0; expected an integer from 1"},
           {" splits=1", " splits=1 splits=1", "the key splits appears twice"},
           {" splits=1", " splits=1 split=1", "unknown key 'split' in a line for gemm"},
           {" splits=1", " splits=1 and", "'and' is not of the form key=value"},
           {" splits=1", " splits=", "splits= has no value"},
           {" m=4096", " m=4095", "m=4095; expected 1 to 16, 32 or a multiple of 64; nearest above: 4096"},
           {"a=bf16/k8", "a=bf16/n8", "a=bf16/n8; expected a type, an index and a width, such as bf16/m8"},
           {"a=bf16/k8", "a=whole/k8", "a=whole/k8: "},
           {"a=bf16/k8", "a=half/k8", "a=half/k8; expected f16"},
           {"a=bf16/k8", "a=bf16/k3", "a=bf16/k3; expected a width of 1, 2, 4, 8 or 16"},
           {"measured=4096x4096", "measured=large", "measured=largex4096x1; expected extents"},
           {"driver=\"CUDA", "driver=\"\1CUDA", "it contains a control character"},
           {"seconds=0.0002", "seconds=-1", "seconds=-1; expected seconds, a positive number"},
           {"seconds=0.0002", "seconds=nan", "seconds=nan; expected seconds, a positive number"},
           {"23:59:59Z", "late", "time=2026-01-31Tlate; expected a time such as"},
           {"kernel=multistage", "kernel=fast",
            "kernel=fast; expected warp_specialized, multistage, double_buffered, gemv, tiny"},
           {"stages=4", "stages=four", "--policy stages=four; expected an integer"},
           {"stages=4", "phases=4", "--policy: unknown field 'phases'"},
           {"version=\"cosmati 0.1.0\"", "version=\"cosmati", "version=: the quotation mark is not closed"},
       }) {
    std::string const line =
        c.old[0] == 'v' ? good.substr(0, good.find(c.old)) + c.by : replaced(good, c.old, c.by);
    EXPECT_EQ(complaint(line).find(std::string("tuning.txt, line 2: ") + c.complaint), 0U) << complaint(line);
  }
}

TEST(Tuning, TheNewerLineStaysWhateverTheOrder) {
  TuningLine const old = line_for(large());
  TuningLine newer = old, faster = old, other = old;
  newer.time = "2026-02-01T00:00:00Z";
  newer.seconds = 3e-4;
  faster.seconds = 1e-4;
  other.splits = 2;
  auto const winner = [](TuningLine const& x, TuningLine const& y) {
    TuningTable table;
    table.add(x);
    table.add(y);
    EXPECT_EQ(table.size(), 1U);
    return to_string(*table.find(x.problems, x.gpu));
  };
  for (auto const& [x, y] : {std::pair{newer, old}, {newer, faster}, {faster, old}}) {
    EXPECT_EQ(winner(x, y), to_string(x));
    EXPECT_EQ(winner(y, x), to_string(x));
  }
  EXPECT_EQ(winner(old, other), winner(other, old));
  TuningLine elsewhere = old;
  elsewhere.gpu = tuning_name(gpu_device("a100").gpu);
  TuningTable table;
  table.add(old);
  table.add(elsewhere);
  EXPECT_EQ(table.size(), 2U);
}

TEST(Tuning, PlansGoByTheLine) {
  std::string const text = to_string(line_for(large()));
  auto const plan = make_plan(large(4088), gpu_device("h200"), with(text));
  EXPECT_EQ(plan.kernel, "multistage");
  EXPECT_EQ(plan.recipe.policy_name, "tuned");
  EXPECT_EQ(plan.recipe.policy.stages, 4);
  EXPECT_EQ(plan.recipe.splits, 1);
  EXPECT_FALSE(plan.recipe.policy.full_tiles);
  EXPECT_EQ(entry_of(plan.considered, "multistage").note,
            "measured, tuning.txt, line 1: 4096x4096x4096x1 took 200 us, as planned 300 us");
  EXPECT_EQ(entry_of(plan.considered, "warp_specialized").note, "");

  auto const split = make_plan(large(), gpu_device("h200"), with(replaced(text, "splits=1", "splits=3")));
  EXPECT_EQ(split.recipe.splits, 3);
  EXPECT_EQ(split.recipe.policy.partition, Partition::split_k);
  EXPECT_EQ(split.workspace_bytes, split.recipe.partial_bytes + split.recipe.flag_bytes);
  EXPECT_GT(split.recipe.partial_bytes, 0U);
}

TEST(Tuning, OtherProblemsOtherGpusAndWhatIsAskedForArePlannedAsEver) {
  PlanOptions const options = with(to_string(line_for(large())));
  auto const same_as_ever = [&](GemmProblem const& problem, Device const& device, PlanOptions asked) {
    auto const without = make_plan(problem, device, asked);
    asked.tuning = options.tuning;
    auto const plan = make_plan(problem, device, asked);
    EXPECT_EQ(plan.kernel, without.kernel);
    EXPECT_EQ(plan.recipe, without.recipe);
    for (Considered const& entry : plan.considered) EXPECT_EQ(entry.note, "");
  };
  same_as_ever(large(2048), gpu_device("h200"), {});
  same_as_ever(large(), gpu_device("h100"), {});
  PlanOptions policy, kernel;
  policy.policy = "large";
  same_as_ever(large(), gpu_device("h200"), policy);
  kernel.kernel = "double_buffered";
  auto const plan = make_plan(large(), gpu_device("h200"), [&] {
    PlanOptions both = kernel;
    both.tuning = options.tuning;
    return both;
  }());
  EXPECT_EQ(plan.kernel, "double_buffered");
  EXPECT_NE(plan.recipe.policy_name, "tuned");
}

TEST(Tuning, ALineForOneKernelIsForThoseWhoAskForIt) {
  TuningLine general = line_for(large()), special = general;
  general.splits = 2;
  special.problems = plan::gemm_class(large(), "multistage");
  TuningTable table;
  table.add(general);
  table.add(special);
  PlanOptions options = with(table.text());
  EXPECT_EQ(make_plan(large(), gpu_device("h200"), options).recipe.splits, 2);
  options.kernel = "multistage";
  EXPECT_EQ(make_plan(large(), gpu_device("h200"), options).recipe.splits, 1);
}

// The line has a policy that was measured with a transposed operand, which arrays of pointers do not support.
TEST(Tuning, PointersFollowNoLineThatCopiesAnOperand) {
  GemmProblem problem = product(DataType::tf32, DataType::f32, 512, 512, 512, "tt");
  for (TensorDescription* const operand : {&problem.a, &problem.b, &problem.d}) {
    operand->layout.stride[0] = 512 * 512;
    operand->layout.shape[0] = 64;
  }
  PlanOptions by_policy;
  by_policy.policy = "block_m=128,block_n=128,block_k=32,cluster_m=1,cluster_n=8,operands=repacked";
  auto const measured = make_plan(problem, gpu_device("h200"), by_policy);
  ASSERT_GT(measured.recipe.repack_a.bytes + measured.recipe.repack_b.bytes, 0u);
  TuningLine line = line_for(problem, "warp_specialized");
  line.policy = plan::text_of(measured.recipe.policy);
  auto const plan_of = [&] { return make_plan(problem, gpu_device("h200"), with(to_string(line))); };
  EXPECT_EQ(plan_of().recipe.policy, measured.recipe.policy);
  problem.by_pointers = true;
  Plan<GemmProblem> const plan = plan_of();
  EXPECT_EQ(plan.recipe.repack_a.bytes + plan.recipe.repack_b.bytes, 0u);
  EXPECT_NE(plan.recipe.policy, measured.recipe.policy);
  EXPECT_NE(entry_of(plan.considered, "warp_specialized").note.find("is ignored"), std::string::npos);
}

TEST(Tuning, WhatMakesNoKernelAnyLongerIsIgnoredAndTold) {
  std::string const text = to_string(line_for(large()));
  auto const without = make_plan(large(), gpu_device("h200"));
  struct Case {
    char const *old, *by, *note;
  };
  for (Case const& c :
       {Case{"stages=4", "stages=9", "stages = 9; multistage takes 3 to 5"},
        {"stages=4", "stages=3,blocks=1,stages=5,block_k=128", "needs "},
        {"multiply=mma", "multiply=half2", "multiply half2 requires sums in f16"},
        {"multiply=mma", "multiply=dp4a", "multiply dp4a sums in s32"},
        {"splits=1", "splits=200",
         "200 splits for 128 steps and 1 matrices; at most one split per step and 65535 matrices"}}) {
    auto const plan = make_plan(large(), gpu_device("h200"), with(replaced(text, c.old, c.by)));
    EXPECT_EQ(plan.kernel, without.kernel);
    EXPECT_EQ(plan.recipe, without.recipe);
    std::string const note = entry_of(plan.considered, "multistage").note;
    EXPECT_EQ(note.find(std::string("tuning.txt, line 1 is ignored: ") + c.note), 0U) << note;
  }
  PlanOptions options = with(replaced(text, "splits=1", "splits=2"));
  options.max_workspace = 1000;
  EXPECT_NE(entry_of(make_plan(large(), gpu_device("h200"), options).considered, "multistage")
                .note.find("it needs a workspace of 67117056 bytes; the limit is 1000"),
            std::string::npos);
}

TEST(Tuning, CandidatesAreThePlansOwnAndWhatIsNearIt) {
  auto const device = gpu_device("h200");
  for (DataType const type : {DataType::f32, DataType::f64, DataType::bf16, DataType::s8, DataType::e4m3})
    for (Index const m : {1, 64, 1000, 4096}) {
      auto const problem = product(type, is_integer(type) ? DataType::s32 : type, m, 4096, 4096, "tn");
      auto const list = plan::tuning_candidates(problem, device, {});
      auto const own = make_plan(problem, device);
      ASSERT_GT(list.size(), 1U);
      EXPECT_LE(list.size(), 24U);
      EXPECT_EQ(list[0].line.policy, plan::text_of(own.recipe.policy));
      EXPECT_EQ(list[0].line.kernel, own.kernel);
      EXPECT_EQ(list[0].line.splits, own.recipe.splits);
      for (TuningCandidate const& one : list) {
        EXPECT_EQ(plan::tuning_candidate_of(problem, device, {}, one.line).size(), 1U) << one.recipe;
        EXPECT_LE(one.predicted_seconds, 3.01 * own.recipe.predicted_seconds) << one.recipe;
      }
      auto const beside = plan::neighbors(problem, device, {}, list[0].line);
      EXPECT_GT(beside.size(), 2U);
      for (TuningCandidate const& one : beside)
        EXPECT_FALSE(one.line.policy == list[0].line.policy && one.line.splits == list[0].line.splits);
    }
  PlanOptions one_kernel;
  one_kernel.kernel = "double_buffered";
  for (TuningCandidate const& one : plan::tuning_candidates(large(), device, one_kernel)) {
    EXPECT_EQ(one.line.kernel, "double_buffered");
    EXPECT_NE(one.line.problems.find(" only=double_buffered"), std::string::npos);
  }
  EXPECT_TRUE(plan::tuning_candidates(large(0), device, {}).empty());
  auto const of_fp8 =
      plan::tuning_candidates(product(DataType::e4m3, DataType::bf16, 4096, 4096, 4096, "tn"), device, {});
  ASSERT_FALSE(of_fp8.empty());
  EXPECT_EQ(of_fp8.front().line.kernel, "warp_specialized");
}

// The problem that a built-in line for a product was measured on; the classes are those of TN and NN.
GemmProblem measured_problem(TuningLine const& line, DataType type) {
  Index m = 0, n = 0, k = 0, batch = 0;
  EXPECT_EQ(std::sscanf(line.measured.c_str(), "%lldx%lldx%lldx%lld", &m, &n, &k, &batch), 4);
  // The letter after the type is the index along which an operand is contiguous.
  auto const contiguous = [&line](char const* operand) {
    return line.problems.at(line.problems.find('/', line.problems.find(operand)) + 1);
  };
  bool const a_along_k = contiguous(" a=") == 'k', b_along_k = contiguous(" b=") == 'k';
  char const* const layouts[2][2] = {{"nt", "tt"}, {"nn", "tn"}};
  DataType const result = type == DataType::tf32 ? DataType::f32 : type;
  GemmProblem problem = product(type, result, m, n, k, layouts[a_along_k][b_along_k]);
  if (batch > 1)
    for (TensorDescription* const operand : {&problem.a, &problem.b, &problem.d})
      operand->layout.shape[0] = batch;
  return problem;
}

TEST(Tuning, PlansGoByEveryBuiltInLineForAProduct) {
  int lines = 0;
  for (std::string_view const built_in : plan::built_in_tuning_lines()) {
    std::string const words(built_in);
    if (!words.starts_with("gemm ")) continue;
    ++lines;
    TuningTable const table = TuningTable::parse(words, "h200.txt");
    DataType const type = words.starts_with("gemm a=f32")    ? DataType::f32
                          : words.starts_with("gemm a=tf32") ? DataType::tf32
                          : words.starts_with("gemm a=f16")  ? DataType::f16
                                                             : DataType::bf16;
    auto const problem_in = [&](DataType of) {
      TuningLine line;
      line.problems = words.substr(0, words.find(" gpu="));
      line.measured = words.substr(words.find(" measured=") + 10);
      return measured_problem(line, of);
    };
    auto const problem = problem_in(type);
    TuningLine const* const line =
        table.find(plan::gemm_class(problem, ""), tuning_name(gpu_device("h200").gpu));
    ASSERT_NE(line, nullptr) << words;
    auto const follows = [&](Plan<GemmProblem> const& plan) {
      return plan.kernel == line->kernel && plan::text_of(plan.recipe.policy) == line->policy &&
             plan.recipe.splits == line->splits;
    };
    EXPECT_TRUE(follows(make_plan(problem, gpu_device("h200")))) << words;
    EXPECT_TRUE(follows(make_plan(problem, gpu_device("h100")))) << "on a similar GPU: " << words;
    if (type == DataType::bf16 || type == DataType::f16) {
      DataType const other = type == DataType::f16 ? DataType::bf16 : DataType::f16;
      EXPECT_TRUE(follows(make_plan(problem_in(other), gpu_device("h200")))) << words;
    }
    if (problem.batch() > 1 && line->kernel == "warp_specialized") {
      auto pointers = problem;
      pointers.by_pointers = true;
      EXPECT_TRUE(follows(make_plan(pointers, gpu_device("h200")))) << "by pointers: " << words;
    }
    PlanOptions predicted;
    predicted.built_in_tuning = false;
    EXPECT_FALSE(follows(make_plan(problem, gpu_device("h200"), predicted)))
        << "the prediction chooses the same, so the line is not needed: " << words;
  }
  EXPECT_GT(lines, 50);
}

TEST(Tuning, OtherGpusLimitsAndOwnLinesComeBeforeBuiltInLines) {
  auto const problem = product(DataType::bf16, DataType::bf16, 1024, 1024, 1024, "tn");
  auto const is_built_in = [&](Device const& device, PlanOptions const& options) {
    auto const plan = make_plan(problem, device, options);
    return plan.chosen().note.find("built-in measurements") != std::string::npos;
  };
  EXPECT_TRUE(is_built_in(gpu_device("h200"), {}));
  EXPECT_FALSE(is_built_in(gpu_device("a100"), {}));
  PlanOptions options;
  options.batch_invariant = true;
  EXPECT_FALSE(is_built_in(gpu_device("h200"), options));
  options = {};
  options.policy = "large";
  EXPECT_FALSE(is_built_in(gpu_device("h200"), options));
  options = with(to_string(line_for(problem)));
  EXPECT_FALSE(is_built_in(gpu_device("h200"), options));
  EXPECT_EQ(make_plan(problem, gpu_device("h200"), options).kernel, "multistage");
  EXPECT_TRUE(is_built_in(gpu_device("h200"), with("# no line\n")));
}

}  // namespace
}  // namespace cosmati
