// Candidates for pooling.
#include "src/backend/cpu/conv/chwn16.h"
#include "src/backend/cpu/own.h"
#include "src/candidates/primitive.h"
#include "src/plan/primitive/volume_pooling.h"

namespace cosmati {

template <>
std::vector<Candidate<PoolingProblem>> gpu_list<PoolingProblem>(Backend) {
  std::vector<Candidate<PoolingProblem>> list = plan::primitive_candidates<PoolingProblem>();
  list.push_back(with_depth(plan::volume_pooling_candidate()));
  return list;
}

}  // namespace cosmati

COSMATI_PLAN(PoolingProblem, {cpu::chwn16_pooling_candidate()}, {cpu::own_candidate<PoolingProblem>()},
             {with_depth(plan::volume_pooling_candidate())})
