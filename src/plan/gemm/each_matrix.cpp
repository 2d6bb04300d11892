// One matrix after another.
#include "src/plan/gemm/each_matrix.h"

namespace cosmati::plan {
namespace {

class EachMatrix final : public HostKernel<GemmProblem> {
 public:
  explicit EachMatrix(Plan<GemmProblem> const& plan)
      : problem_(plan.problem),
        one_(cosmati::prepare(make_plan(matrix_of_batch(plan.problem), plan.device))) {}

  void run(GemmProblem::Arguments const& arguments, std::byte* workspace) const override {
    for (Index i = 0; i < problem_.batch(); ++i)
      one_.run(MatrixOfBatch(problem_, arguments, i).arguments, workspace);
  }

 private:
  GemmProblem problem_;
  Prepared<GemmProblem> one_;
};

}  // namespace

Candidate<GemmProblem> each_matrix_candidate() {
  Candidate<GemmProblem> candidate{"each_matrix",
                                   {{[](GemmProblem const& problem, Device const&) -> std::string {
                                     return problem.by_pointers ? "" : "is for batches given by pointers";
                                   }}},
                                   [](GemmProblem const& problem, Device const& device) {
                                     return make_plan(matrix_of_batch(problem), device).workspace_bytes;
                                   },
                                   [](Plan<GemmProblem> const& plan) -> std::unique_ptr<Kernel<GemmProblem>> {
                                     return std::make_unique<EachMatrix>(plan);
                                   }};
  candidate.takes_pointers = true;
  return candidate;
}

}  // namespace cosmati::plan
