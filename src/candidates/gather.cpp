// Candidates for gathering rows: a generated kernel, and a host loop.
#include "cosmati/ops/gather.h"
#include "src/candidates/candidates.h"
#include "src/candidates/primitive.h"

namespace cosmati {

template <>
std::vector<Candidate<GatherProblem>> const& candidates<GatherProblem>(Backend backend) {
  static std::vector<Candidate<GatherProblem>> const host{reference_candidate<GatherProblem>()},
      composed = plan::primitive_candidates<GatherProblem>();
  return backend == Backend::cuda || backend == Backend::emulator ? composed : host;
}
template Plan<GatherProblem> make_plan(GatherProblem const&, Device const&, PlanOptions const&);
template Prepared<GatherProblem> prepare(Plan<GatherProblem> const&);

}  // namespace cosmati
