// Learning-rate schedules at the points that their formulas fix.
#include <gtest/gtest.h>

#include <cmath>

#include "cosmati/ops/optimizer.h"

namespace cosmati {
namespace {

TEST(Schedule, Constant) {
  Schedule const schedule{.kind = ScheduleKind::constant, .rate = 0.3};
  EXPECT_EQ(schedule.rate_at(0, 10), 0.3);
  EXPECT_EQ(schedule.rate_at(9, 10), 0.3);
}

TEST(Schedule, StepDropsAtEachPeriod) {
  Schedule const schedule{.kind = ScheduleKind::step, .rate = 8, .decay = 0.5, .period = 10};
  EXPECT_EQ(schedule.rate_at(0, 100), 8);
  EXPECT_EQ(schedule.rate_at(9, 100), 8);
  EXPECT_EQ(schedule.rate_at(10, 100), 4);
  EXPECT_EQ(schedule.rate_at(35, 100), 1);
}

TEST(Schedule, Inverse) {
  Schedule const schedule{.kind = ScheduleKind::inverse, .rate = 2, .decay = 0.5, .power = 2};
  EXPECT_EQ(schedule.rate_at(0, 100), 2);
  EXPECT_EQ(schedule.rate_at(2, 100), 0.5);
}

TEST(Schedule, CosineFallsToZero) {
  Schedule const schedule{.kind = ScheduleKind::cosine, .rate = 2};
  EXPECT_EQ(schedule.rate_at(0, 100), 2);
  EXPECT_NEAR(schedule.rate_at(50, 100), 1, 1e-15);
  EXPECT_NEAR(schedule.rate_at(25, 100), 1 + std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(schedule.rate_at(100, 100), 0, 1e-15);
  EXPECT_NEAR(schedule.rate_at(1000, 100), 0, 1e-15);
}

TEST(Schedule, OneCycleRisesAndFalls) {
  Schedule const schedule{
      .kind = ScheduleKind::one_cycle, .rate = 10, .warm_up = 0.25, .start_divisor = 5, .end_divisor = 100};
  EXPECT_NEAR(schedule.rate_at(0, 400), 2, 1e-15);
  EXPECT_NEAR(schedule.rate_at(50, 400), 6, 1e-14);
  EXPECT_NEAR(schedule.rate_at(100, 400), 10, 1e-14);
  EXPECT_NEAR(schedule.rate_at(250, 400), 5.05, 1e-14);
  EXPECT_NEAR(schedule.rate_at(400, 400), 0.1, 1e-15);
  for (long long step = 1; step < 400; ++step) {
    double const change = schedule.rate_at(step, 400) - schedule.rate_at(step - 1, 400);
    EXPECT_TRUE(step <= 100 ? change > 0 : change < 0) << step;
  }
}

TEST(Schedule, OneCycleWithoutOneOfItsFlanks) {
  Schedule schedule{.kind = ScheduleKind::one_cycle, .rate = 10, .warm_up = 0};
  EXPECT_EQ(schedule.rate_at(0, 100), 10);
  schedule.warm_up = 1;
  EXPECT_NEAR(schedule.rate_at(0, 100), 10 / 25.0, 1e-15);
  EXPECT_EQ(schedule.rate_at(100, 100), 10);
}

TEST(Schedule, RefusesWhatIsNotDefined) {
  auto const message = [](Schedule const& schedule, long long step, long long total) -> std::string {
    try {
      schedule.rate_at(step, total);
    } catch (Error const& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(message({}, -1, 10),
            "learning-rate schedule: step -1 of 10; the step must be at least 0, the total at least 1");
  EXPECT_NE(message({}, 0, 0), "nothing thrown");
  EXPECT_EQ(message({.kind = ScheduleKind::step, .period = 0}, 0, 10),
            "learning-rate schedule: the period is 0 steps; it must be at least 1");
  EXPECT_EQ(message({.kind = ScheduleKind::one_cycle, .warm_up = 1.5}, 0, 10),
            "learning-rate schedule: warm_up is 1.5; it must be from 0 to 1");
  EXPECT_NE(message({.kind = ScheduleKind::one_cycle, .end_divisor = 0}, 0, 10), "nothing thrown");
}

TEST(Schedule, Names) {
  EXPECT_STREQ(name_of(ScheduleKind::one_cycle), "one-cycle");
  EXPECT_EQ(parse_schedule_kind("one_cycle"), ScheduleKind::one_cycle);
  for (int i = 0; i < schedule_kind_count; ++i) {
    auto const kind = static_cast<ScheduleKind>(i);
    EXPECT_EQ(parse_schedule_kind(name_of(kind)), kind);
  }
  try {
    parse_schedule_kind("linear");
    FAIL();
  } catch (Error const& error) {
    EXPECT_STREQ(
        error.what(),
        "unknown learning-rate schedule 'linear'; valid schedules: constant, step, inverse, cosine, one-cycle");
  }
}

}  // namespace
}  // namespace cosmati
