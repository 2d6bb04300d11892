// Pooling of volumes, (N, C, D, H, W): first each plane, then along the depth, each by a pooling of images.
#pragma once
#include "cosmati/ops/pooling.h"

namespace cosmati::plan {

// On all backends, but without indices, because those of a volume are not composed of those of the two
// passes.
Candidate<PoolingProblem> volume_pooling_candidate();

}  // namespace cosmati::plan
