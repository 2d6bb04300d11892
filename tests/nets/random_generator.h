// A generator with random weights.
#pragma once
#include <cmath>
#include <map>
#include <vector>

#include "nets/dcgan/layer.h"
#include "nets/dcgan/weights.h"
#include "nets/random.h"

namespace cosmati::dcgan {

// Parameters in the order of network.bin. Filters are scaled by their depth and variances are close to 1, so
// that activations stay close to 1.
inline std::vector<float> random_numbers(Architecture const& a, unsigned long long seed = 11) {
  nets::Random random(seed, 0);
  std::vector<float> all;
  auto const add = [&](Index count, double low, double high) {
    for (Index i = 0; i < count; ++i) all.push_back(static_cast<float>(random.uniform(low, high)));
  };
  auto const add_batch_norm = [&](Index count) {
    add(count, -0.3, 0.3), add(count, 0.7, 1.3), add(count, -0.3, 0.3), add(count, 0.7, 1.3);
  };
  add(a.latent * a.features(), -0.2, 0.2), add(a.features(), -0.1, 0.1), add_batch_norm(a.channel(0));
  for (int i = 1; i <= layer_count; ++i) {
    double const scale = 1.5 / std::sqrt(static_cast<double>(a.channel(i - 1)) * 6);
    add(25 * a.channel(i) * a.channel(i - 1), -scale, scale), add(a.channel(i), -0.1, 0.1);
    if (i < layer_count) add_batch_norm(a.channel(i));
  }
  return all;
}

inline FoldedWeights const& random_generator(Architecture const& architecture = {}) {
  static std::map<std::vector<Index>, FoldedWeights> known;
  auto const found = known.find(architecture.channels);
  if (found != known.end()) return found->second;
  auto const weights = Weights::from(architecture, random_numbers(architecture));
  return known.emplace(architecture.channels, FoldedWeights(weights)).first->second;
}

}  // namespace cosmati::dcgan
