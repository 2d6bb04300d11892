// The candidates for groups: each kernel family that computes all members in one launch, then one member
// after another.
#include "src/plan/gemm/group_choice.h"

#include <fmt/format.h>

#include "src/plan/emulated/contents.h"
#include "src/plan/gemm/choice.h"
#include "src/plan/gemm/group.h"
#include "src/plan/gemm/program/program.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

template <MainLoop main_loop>
Offer<GroupedGemmProblem> offer(GroupedGemmProblem const& problem, Device const& device,
                                PlanOptions const& options) {
  Offer<GroupedGemmProblem> result;
  if (problem.members.empty()) {
    result.refusal = "the group has no members";
    return result;
  }
  GroupForm const group = group_form(problem);
  Offer<GemmProblem> const best = group_offer(main_loop, problem, group, device, options);
  result.refusal = best.refusal;
  if (!best.refusal.empty()) return result;
  if (device.backend == Backend::emulator) result.refusal = emulator::group_violation(best.recipe, group);
  Index const tiles = first_tiles(best.recipe.policy, group).back();
  if (tiles > max_int) result.refusal = fmt::format("{} tiles; a grid has at most 2147483647", tiles);
  result.recipe = best.recipe;
  result.predicted_seconds = best.predicted_seconds;
  result.text = fmt::format("{} members with {} tiles, {}", group.problems.size(), tiles, best.text);
  result.workspace_bytes = group_workspace(device.backend, best.recipe, group, problem);
  return result;
}

template <MainLoop main_loop>
Candidate<GroupedGemmProblem> group_candidate() {
  Candidate<GroupedGemmProblem> result{name_of(main_loop), {}, nullptr, &prepare_program};
  result.offer = &offer<main_loop>;
  return result;
}

}  // namespace

std::vector<Candidate<GroupedGemmProblem>> group_candidates() {
  return {group_candidate<MainLoop::warp_specialized>(), group_candidate<MainLoop::multistage>(),
          group_candidate<MainLoop::double_buffered>()};
}

}  // namespace cosmati::plan
