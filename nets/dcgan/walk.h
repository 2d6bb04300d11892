// Interpolation between latent vectors.
#pragma once
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::dcgan {

// Returns `frames` vectors (frames, 100) on a closed path through the stops (count, 100), in equal steps, the
// first frame at the first stop: frame i is at s = i * count / frames stops. Between two stops a and b, at
// fraction t, it follows the arc between them (spherical interpolation; Shoemake 1985):
//   sin((1 - t) theta) / sin(theta) a + sin(t theta) / sin(theta) b, theta the angle between a and b,
// so that the length of the vectors, which a generator expects to be that of random ones, does not decrease
// in between; along the straight line if there is no arc (theta 0 or 180 degrees, a length of 0).
std::vector<float> walk(std::vector<float> const& stops, Index frames);

}  // namespace cosmati::dcgan
