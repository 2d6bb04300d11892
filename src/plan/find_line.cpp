// Converts the result of find to a line of a tuning file.
#include <fmt/format.h>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/find.h"
#include "cosmati/ops/gemm.h"
#include "src/plan/gemm/tuning_candidates.h"
#include "src/plan/measured_kernel.h"

namespace cosmati {
namespace {

std::string extents_of(GemmProblem const& p) {
  return fmt::format("{}x{}x{}x{}", p.m(), p.n(), p.k(), p.batch());
}

// NxCxHxWxKxRxS or, for a bias gradient, NxKxPxQ.
std::string extents_of(ConvolutionProblem const& p) {
  if (p.direction == ConvolutionDirection::bias)
    return fmt::format("{}x{}x{}x{}", p.y.extent(0), p.y.extent(1), p.y.extent(2), p.y.extent(3));
  return fmt::format("{}x{}x{}x{}x{}x{}x{}", p.x.extent(0), p.x.extent(1), p.x.extent(2), p.x.extent(3),
                     p.w.extent(0), p.w.extent(2), p.w.extent(3));
}

template <class Problem>
TuningLine named_line(Plan<Problem> const& plan) {
  TuningLine line;
  line.problems = plan::measured_class(plan.problem, plan.device.backend);
  if (line.problems.empty())
    throw Error(ErrorCode::bad_request,
                "tuning files do not support arrays of pointers, empty products or volumes");
  line.gpu = plan::device_name(plan.device);
  line.kernel = plan.kernel;
  line.recipe = plan.chosen().recipe;
  line.measured = extents_of(plan.problem);
  line.origin = "this measurement";
  return line;
}

TuningLine line_of(Plan<ConvolutionProblem> const& plan) { return named_line(plan); }

// On a GPU the line has the policy, as in lines of `cosmati tune`, so that each class has a single line.
TuningLine line_of(Plan<GemmProblem> const& plan) {
  TuningLine line = named_line(plan);
  if (plan.device.backend != Backend::cuda) return line;
  TuningLine const whole =
      plan::line_of(plan.problem, plan.device.gpu, "", plan.recipe.policy, plan.recipe.splits);
  bool const is_made = !plan::tuning_candidate_of(plan.problem, plan.device, {}, whole).empty();
  return is_made && whole.kernel == plan.kernel ? whole : line;
}

}  // namespace

template <class Problem>
TuningLine tuning_line(std::vector<Found<Problem>> const& found, PlanOptions const& options) {
  Plan<Problem> const& best = found.front().prepared.plan();
  TuningLine line = line_of(best);
  line.seconds = line.planned_seconds = found.front().seconds;
  PlanOptions without = options;
  without.tuning.reset();
  std::string const planned = make_plan(best.problem, best.device, without).kernel;
  for (Found<Problem> const& one : found)
    if (one.prepared.plan().kernel == planned) line.planned_seconds = one.seconds;
  return line;
}

template TuningLine tuning_line(std::vector<Found<GemmProblem>> const&, PlanOptions const&);
template TuningLine tuning_line(std::vector<Found<ConvolutionProblem>> const&, PlanOptions const&);

}  // namespace cosmati
