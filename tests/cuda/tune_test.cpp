// tune with the fake driver: the choice among kernels with durations set by the test, and the line written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/options/sizes.h"
#include "cli/verbs/gpu_tuning.h"
#include "cli/verbs/regret.h"
#include "cli/verbs/tune_job.h"
#include "cosmati/gemm/arguments.h"
#include "src/io/tuning_file.h"
#include "src/jit/cache.h"
#include "src/jit/nvrtc.h"
#include "src/plan/gemm/tuning.h"
#include "tests/cuda/fake_libcuda.h"

namespace cosmati::cli {
namespace {

[[maybe_unused]] int const chosen =
    setenv("COSMATI_LIBCUDA", COSMATI_FAKE_LIBCUDA, 1) + setenv("COSMATI_CACHE", COSMATI_TEST_CACHE, 1);

template <int milliseconds, bool right = true>
void multiply(fake::Launch const& launch) {
  fake::take_milliseconds(milliseconds);
  auto const& params = launch.as<MatrixGemmParameters<NoEpilogueArguments>>();
  auto const at = [](MatrixArguments const& matrix, Index row, Index column) {
    return static_cast<float*>(matrix.data) + row * matrix.row_stride + column * matrix.column_stride;
  };
  for (Index m = 0; right && m < params.m; ++m)
    for (Index n = 0; n < params.n; ++n) {
      float sum = 0;
      for (Index k = 0; k < params.k; ++k) sum += *at(params.a, m, k) * *at(params.b, n, k);
      *at(params.d, m, n) = sum;
    }
}

class Few final : public TuningChoices {
 public:
  explicit Few(TuningChoices const& all) : all_(all) {
    for (TuningCandidate const& one : all.tuning_candidates())
      if (list_.size() < 3 && one.line.splits == 1 && plan::policy_of(one.line).threads() <= 256)
        list_.push_back(one);
  }
  std::vector<TuningCandidate> tuning_candidates() const override { return list_; }
  std::vector<TuningCandidate> neighbors(TuningLine const&) const override { return {}; }
  std::vector<TuningCandidate> tuning_candidate_of(TuningLine const& line) const override {
    return all_.tuning_candidate_of(line);
  }

 private:
  TuningChoices const& all_;
  std::vector<TuningCandidate> list_;
};

class Tune : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
    fake::reset();
    options_.kernel = "double_buffered";
    job_ = made_job(*subject_, {48, 40, 24, 1}, {});
    device_ = this_device(Backend::cuda, 1);
    choices_ = job_.task->tuning_choices(device_, options_);
    few_ = std::make_unique<Few>(*choices_);
    ASSERT_EQ(few_->tuning_candidates().size(), 3U);
  }

  void set_kernel(TuningCandidate const& candidate, fake::Kernel kernel) {
    PlanOptions options = options_;
    TuningTable table;
    table.add(candidate.line);
    options.tuning = std::make_shared<TuningTable const>(table);
    auto const composition = job_.task->compose(device_, options);
    fake::set_kernel(jit::kernel_cache().get(composition->source).lowered_name, kernel);
  }

  TuningResult tune(TuningLine const* known) {
    TuningRules rules{30};
    rules.slices = 7;
    rules.hot =
        true;  // one set of operands: a graph over all of them would take thousands of products by the fake
    return tune_on_gpu(*job_.task, *few_, known, device_, options_, rules, 1);
  }

  std::unique_ptr<Subject> subject_ = make_subject("gemm");
  PlanOptions options_;
  Job job_;
  Device device_;
  std::unique_ptr<TuningChoices> choices_;
  std::unique_ptr<Few> few_;
};

TEST_F(Tune, ChoosesTheFastestThatIsRight) {
  auto const three = few_->tuning_candidates();
  set_kernel(three[0], multiply<20>);
  set_kernel(three[1], multiply<2, false>);
  set_kernel(three[2], multiply<10>);
  int const allocations = fake::allocations(), handles = fake::handles();
  TuningResult const result = tune(nullptr);
  EXPECT_EQ(result.chosen.line.policy, three[2].line.policy);
  EXPECT_EQ(result.planned.line.policy, three[0].line.policy);
  EXPECT_EQ(result.measured.size(), 3);
  EXPECT_NEAR(result.chosen.line.seconds, 12.5e-3, 1e-6);
  EXPECT_NEAR(result.chosen.line.planned_seconds, 22.5e-3, 1e-6);
  EXPECT_NEAR(result.ratio.median, 22.5 / 12.5, 1e-3);
  ASSERT_EQ(result.failures.size(), 1U);
  EXPECT_NE(result.failures[0].find("nan, not "), std::string::npos) << result.failures[0];
  EXPECT_FALSE(result.has_kept);
  EXPECT_EQ(fake::allocations(), allocations) << "all memory is given back";
  EXPECT_EQ(fake::handles(), handles) << "all handles are given back";
}

TEST_F(Tune, TimesAllAsGraphsOrNone) {
  auto const three = few_->tuning_candidates();
  set_kernel(three[0], multiply<20>);
  set_kernel(three[1], multiply<10>);
  EXPECT_TRUE(tune(nullptr).as_graphs);
  fake::fail_next("cuGraphInstantiateWithFlags", 1);
  TuningResult const result = tune(nullptr);
  EXPECT_FALSE(result.as_graphs);
  EXPECT_EQ(result.chosen.line.policy, three[1].line.policy);
  EXPECT_NEAR(result.chosen.line.seconds, 12.5e-3, 1e-6);
}

TEST_F(Tune, WhatIsNotFasterChangesNothing) {
  auto const three = few_->tuning_candidates();
  for (TuningCandidate const& one : three) set_kernel(one, multiply<10>);
  EXPECT_EQ(tune(nullptr).chosen.line.policy, three[0].line.policy) << "the plan's own stays";
  TuningResult const kept = tune(&three[2].line);
  EXPECT_EQ(kept.chosen.line.policy, three[2].line.policy) << "what the file has stays";
  EXPECT_TRUE(kept.has_kept);
}

TEST_F(Tune, ALineThatNoLongerFitsIsNoChoice) {
  auto const three = few_->tuning_candidates();
  set_kernel(three[0], multiply<10>);
  TuningLine old = three[1].line;
  old.splits = 4000;
  TuningResult const result = tune(&old);
  EXPECT_EQ(result.measured.size(), 1) << "the others have no kernel on this device";
  EXPECT_EQ(result.chosen.line.policy, three[0].line.policy);
}

TEST_F(Tune, FailsIfNothingIsRight) {
  set_kernel(few_->tuning_candidates()[0], multiply<10, false>);
  EXPECT_THROW(tune(nullptr), Error);
}

TEST_F(Tune, WritesALineThatPlansGoBy) {
  set_kernel(choices_->tuning_candidates().front(), multiply<10>);
  std::string const path = ::testing::TempDir() + "tune_test.txt";
  std::filesystem::remove(path);
  TuneRequest request;
  request.subject = make_subject("gemm");
  request.size.size = "48x40x24,48x39x24";
  request.out = path;
  request.budget_seconds = 1;
  request.common.backend = "cuda";
  request.common.kernel = "double_buffered";
  ::testing::internal::CaptureStdout();
  tune_job(request, {});
  std::string const printed = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(printed.find("as planned"), std::string::npos) << printed;
  EXPECT_NE(printed.find("median 1, largest 1 (48x40x24 nn f32), of 1 problem."), std::string::npos)
      << printed;
  EXPECT_NE(printed.find("belongs to a class that has already been measured"), std::string::npos) << printed;
  TuningTable const table = io::read_tuning(path);
  EXPECT_EQ(table.size(), 1U);
  PlanOptions options = options_;
  options.tuning = std::make_shared<TuningTable const>(table);
  Choice const choice = job_.task->plan(device_, options);
  auto const planned = std::ranges::find(choice.considered, choice.kernel, &Considered::kernel);
  ASSERT_NE(planned, choice.considered.end());
  EXPECT_NE(planned->note.find("measured, " + path + ", line 3: 48x40x24x1 took "), std::string::npos)
      << planned->note;
}

TEST(Regret, IsReportedAndLimited) {
  EXPECT_EQ(Regret("").text(), "");
  Regret regret("1.5");
  regret.add("9x8x7", 1);
  regret.add("1x2x3", 1.999);
  EXPECT_EQ(
      regret.text(),
      "Regret (time as planned / time of the fastest): median 1.5, largest 1.999 (1x2x3), of 2 problems.");
  try {
    regret.check();
    ADD_FAILURE() << "1.999 is above 1.5";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::wrong_result);
    EXPECT_STREQ(error.what(), "regret above --fail-above 1.5 in 1 of 2: 1x2x3: 1.999");
  }
  Regret within("2");
  within.add("1x2x3", 1.999);
  within.check();
  EXPECT_THROW(Regret("0.5"), Error);
}

}  // namespace
}  // namespace cosmati::cli
