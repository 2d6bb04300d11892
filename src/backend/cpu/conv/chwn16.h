// Candidates "chwn16": convolution and pooling of 16 f32 images that are contiguous (CHWN with N = 16).
#pragma once
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/pooling.h"

namespace cosmati::cpu {

Candidate<ConvolutionProblem> chwn16_convolution_candidate();
Candidate<PoolingProblem> chwn16_pooling_candidate();

}  // namespace cosmati::cpu
