// Interpolation between latent vectors.
#pragma once
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::dcgan {

// `frames` vectors (frames, 100) on a closed way from stop to stop (count, 100), in equal steps, the first
// frame at the first stop: frame i is s = i * count / frames stops on. Between two stops a and b, at t of the
// way from one to the other, it goes along the arc between them (spherical interpolation; Shoemake 1985):
//   sin((1 - t) theta) / sin(theta) a + sin(t theta) / sin(theta) b, theta the angle between a and b,
// so that the length of the vectors, which a generator expects to be that of random ones, does not sink on
// the way; along the straight line where there is no arc (theta 0 or 180 degrees, a length of 0).
std::vector<float> walk(std::vector<float> const& stops, Index frames);

}  // namespace cosmati::dcgan
