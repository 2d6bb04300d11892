// Computes the products of a batch one matrix at a time.
#include "src/plan/gemm/each_matrix.h"

namespace cosmati::plan {
namespace {

class EachMatrix final : public HostKernel<GemmProblem> {
 public:
  explicit EachMatrix(Plan<GemmProblem> const& plan)
      : problem_(plan.problem),
        one_(cosmati::prepare(make_plan(matrix_of_batch(plan.problem), plan.device,
                                        {.batch_invariant = plan.batch_invariant}))) {}

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
  Candidate<GemmProblem> candidate{
      "each_matrix", {}, nullptr, [](Plan<GemmProblem> const& plan) -> std::unique_ptr<Kernel<GemmProblem>> {
        return std::make_unique<EachMatrix>(plan);
      }};
  candidate.offer = [](GemmProblem const& problem, Device const& device, PlanOptions const& options) {
    Offer<GemmProblem> offer;
    if (!problem.by_pointers)
      offer.refusal = "supports only batches given by pointers";
    else
      offer.refusal = options.policy.refusal();
    if (offer.refusal.empty())
      offer.workspace_bytes =
          make_plan(matrix_of_batch(problem), device, {.batch_invariant = options.batch_invariant})
              .workspace_bytes;
    return offer;
  };
  candidate.takes_pointers = true;
  candidate.batch_invariant = true;
  return candidate;
}

}  // namespace cosmati::plan
