// Candidates for convolutions.
#include "src/backend/cpu/conv/chwn16.h"
#include "src/backend/cpu/own.h"
#include "src/candidates/candidates.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/nested/depth_taps.h"
#include "src/plan/conv/nested/image_slices.h"

namespace cosmati {

template <>
std::vector<Candidate<ConvolutionProblem>> gpu_list<ConvolutionProblem>(Backend backend) {
  std::vector<Candidate<ConvolutionProblem>> list = plan::convolution_candidates(backend);
  list.push_back(with_depth(plan::depth_taps_candidate()));
  return list;
}

}  // namespace cosmati

COSMATI_PLAN(ConvolutionProblem,
             {cpu::chwn16_convolution_candidate(), cpu::bias_gradient_candidate(),
              cpu::host_product_candidate(), cpu::host_winograd_candidate()},
             {},
             {cpu::im2col_candidate(), plan::one_image_candidate(), with_depth(plan::depth_taps_candidate())})
