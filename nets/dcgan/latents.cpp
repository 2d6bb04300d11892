// A stream of random numbers with random access.
#include "nets/dcgan/latents.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "nets/dcgan/architecture.h"
#include "nets/random.h"

namespace cosmati::dcgan {

Latents::Latents(std::vector<float> z)
    : z_(std::move(z)), count_(static_cast<Index>(z_.size()) / latent_size) {}

Latents::Latents(Index count, unsigned long long seed) : count_(count), seed_(seed) {}

void Latents::read(Index first, Index count, float* z) const {
  if (!z_.empty()) {
    std::copy_n(z_.data() + first * latent_size, count * latent_size, z);
    return;
  }
  nets::Random random(seed_, 0);
  random.skip(static_cast<unsigned long long>(first * latent_size));
  for (Index i = 0; i < count * latent_size; ++i) z[i] = static_cast<float>(random.uniform(-1, 1));
}

unsigned long long Latents::fingerprint() const {
  unsigned long long const shape[] = {static_cast<unsigned long long>(count_), seed_};
  auto const of_shape = dcgan::fingerprint(shape, sizeof shape);
  return z_.empty() ? of_shape : dcgan::fingerprint(z_.data(), z_.size() * sizeof(float), of_shape);
}

unsigned long long fingerprint(void const* data, std::size_t bytes, unsigned long long before) {
  auto const* const byte = static_cast<unsigned char const*>(data);
  for (std::size_t i = 0; i < bytes; ++i) before = (before ^ byte[i]) * 0x100000001b3ULL;
  return before;
}

}  // namespace cosmati::dcgan
