// A generator whose weights are random.
#pragma once
#include <cmath>
#include <vector>

#include "nets/dcgan/layer.h"
#include "nets/dcgan/weights.h"
#include "nets/random.h"

namespace cosmati::dcgan {

// Activations stay near 1: filters scaled by their depth, variances near 1.
inline FoldedWeights const& random_generator() {
  static FoldedWeights const folded = [] {
    nets::Random random(11, 0);
    std::vector<float> all;
    auto const add = [&](Index count, double low, double high) {
      for (Index i = 0; i < count; ++i) all.push_back(static_cast<float>(random.uniform(low, high)));
    };
    auto const add_batch_norm = [&](Index count) {
      add(count, -0.3, 0.3), add(count, 0.7, 1.3), add(count, -0.3, 0.3), add(count, 0.7, 1.3);
    };
    add(latent_size * 8192, -0.2, 0.2), add(8192, -0.1, 0.1), add_batch_norm(512);
    for (int i = 1; i <= layer_count; ++i) {
      double const scale = 1.5 / std::sqrt(static_cast<double>(channels[i - 1]) * 6);
      add(25 * channels[i] * channels[i - 1], -scale, scale), add(channels[i], -0.1, 0.1);
      if (i < layer_count) add_batch_norm(channels[i]);
    }
    return FoldedWeights(Weights::from(all));
  }();
  return folded;
}

}  // namespace cosmati::dcgan
