// Candidates for matrix products.
#include "src/backend/cpu/own.h"
#include "src/candidates/candidates.h"
#include "src/plan/gemm/choice.h"
#include "src/plan/gemm/each_matrix.h"
#include "src/plan/gemm/pieces.h"

namespace cosmati {

template <>
std::vector<Candidate<GemmProblem>> gpu_list<GemmProblem>(Backend backend) {
  std::vector<Candidate<GemmProblem>> list = plan::gemm_candidates(backend);
  list.push_back(plan::bf16_products_candidate());
  list.push_back(plan::tf32_products_candidate());
  return list;
}

}  // namespace cosmati

COSMATI_PLAN(GemmProblem, {cpu::openblas_candidate()}, {cpu::openblas_f32_candidate()},
             {plan::each_matrix_candidate(), cpu::in_order_candidate()})
