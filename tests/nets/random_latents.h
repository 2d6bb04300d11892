// The first latent vectors of a seed.
#pragma once
#include <vector>

#include "nets/dcgan/architecture.h"
#include "nets/dcgan/latents.h"

namespace cosmati::dcgan {

inline std::vector<float> random_latents(Index count, unsigned long long seed) {
  std::vector<float> z(static_cast<std::size_t>(count * latent_size));
  Latents(count, seed).read(0, count, z.data());
  return z;
}

}  // namespace cosmati::dcgan
