// Candidates for groups of matrix products.
#include "cosmati/ops/grouped_gemm.h"

#include "reference/reference.h"
#include "src/candidates/each_member.h"
#include "src/plan/gemm/group_choice.h"
#include "src/plan/make_plan.h"

namespace cosmati {
namespace {

void run_reference(GroupedGemmProblem const& problem, GroupedGemmProblem::Arguments const& arguments) {
  for (std::size_t i = 0; i < problem.members.size(); ++i)
    reference::run(problem.members[i], arguments.members[i]);
}

std::vector<Candidate<GroupedGemmProblem>> gpu_candidates() {
  auto list = plan::group_candidates();
  list.push_back(plan::each_member_candidate());
  return list;
}

}  // namespace

template <>
std::vector<Candidate<GroupedGemmProblem>> const& candidates<GroupedGemmProblem>(Backend backend) {
  using List = std::vector<Candidate<GroupedGemmProblem>>;
  static List const truth = [] {
    List list{function_candidate<GroupedGemmProblem, &run_reference>("reference")};
    list.front().batch_invariant = true;
    return list;
  }();
  static List const cpu{plan::each_member_candidate(), truth.front()};
  static List const gpu = gpu_candidates();
  switch (backend) {
    case Backend::cuda:
    case Backend::emulator: return gpu;
    case Backend::reference: return truth;
    case Backend::cpu: break;
  }
  return cpu;
}

template Plan<GroupedGemmProblem> make_plan(GroupedGemmProblem const&, Device const&, PlanOptions const&);
template Prepared<GroupedGemmProblem> prepare(Plan<GroupedGemmProblem> const&);

}  // namespace cosmati
