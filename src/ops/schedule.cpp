// Learning-rate schedules. Cosine: Loshchilov and Hutter 2017, equation 5 without restarts. One cycle: Smith
// and Topin 2018, with cosine flanks. Inverse: LeCun et al. 1998b and Caffe's "inv".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cosmati/ops/optimizer.h"
#include "src/ops/check.h"
#include "src/ops/names.h"

namespace cosmati {
namespace {

// Half-cosine interpolation from `start` to `end` for `progress` from 0 to 1.
double along_cosine(double start, double end, double progress) {
  return end + (start - end) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

void check(Schedule const& schedule, long long step, long long total) {
  char const* const operation = "learning-rate schedule";
  if (step < 0 || total < 1)
    refuse(operation,
           fmt::format("step {} of {}; the step must be at least 0, the total at least 1", step, total));
  if (schedule.kind == ScheduleKind::step && schedule.period < 1)
    refuse(operation, fmt::format("the period is {} steps; it must be at least 1", schedule.period));
  if (schedule.kind != ScheduleKind::one_cycle) return;
  if (!(schedule.warm_up >= 0 && schedule.warm_up <= 1))
    refuse(operation, fmt::format("warm_up is {}; it must be from 0 to 1", schedule.warm_up));
  if (!(schedule.start_divisor > 0 && schedule.end_divisor > 0))
    refuse(operation, fmt::format("the divisors are {} at the start and {} at the end; both must be positive",
                                  schedule.start_divisor, schedule.end_divisor));
}

}  // namespace

char const* name_of(ScheduleKind kind) {
  constexpr char const* names[schedule_kind_count] = {"constant", "step", "inverse", "cosine", "one-cycle"};
  return names[static_cast<int>(kind)];
}

ScheduleKind parse_schedule_kind(std::string const& name) {
  return parse_name<ScheduleKind>("learning-rate schedule", name, schedule_kind_count, "valid schedules");
}

double Schedule::rate_at(long long step, long long total) const {
  check(*this, step, total);
  double const t = std::min(1.0, static_cast<double>(step) / static_cast<double>(total));
  switch (kind) {
    case ScheduleKind::constant: return rate;
    case ScheduleKind::step: {
      long long const drops = step / period;
      return rate * std::pow(decay, static_cast<double>(drops));
    }
    case ScheduleKind::inverse: return rate / std::pow(1 + decay * static_cast<double>(step), power);
    case ScheduleKind::cosine: return along_cosine(rate, 0, t);
    case ScheduleKind::one_cycle: break;
  }
  if (t < warm_up) return along_cosine(rate / start_divisor, rate, t / warm_up);
  return along_cosine(rate, rate / end_divisor, warm_up < 1 ? (t - warm_up) / (1 - warm_up) : 0);
}

}  // namespace cosmati
