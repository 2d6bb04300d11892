// Latent vectors: given, or generated at random on demand.
#pragma once
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::dcgan {

class Latents {
 public:
  explicit Latents(std::vector<float> z);         // (count, 100)
  Latents(Index count, unsigned long long seed);  // each number uniform in [-1, 1)
  Index count() const { return count_; }
  // Reads `count` vectors starting at `first` into z (count, 100); the same for the same seed on every
  // machine and for any division into chunks.
  void read(Index first, Index count, float* z) const;
  unsigned long long fingerprint() const;

 private:
  std::vector<float> z_;
  Index count_;
  unsigned long long seed_ = 0;
};

// 64-bit FNV-1a hash: distinguishes files and requests, but not against adversaries.
unsigned long long fingerprint(void const* data, std::size_t bytes,
                               unsigned long long before = 0xcbf29ce484222325ULL);

}  // namespace cosmati::dcgan
