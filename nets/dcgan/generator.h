// The DCGAN generator: from latent vectors to images.
//   z (100) -> projection, seen as 4x4x512 -> 8x8x256 -> 16x16x128 -> 32x32x64 -> 64x64x3, each by a 5x5
//   transposed convolution of stride 2; batch normalisation with stored statistics and ReLU after all but the
//   last, then tanh.
// out[2i + r - 1, 2j + s - 1, k] += in[i, j, c] * w[r, s, k, c]: the data gradient of a convolution with
// stride 2, padding 1 before and 2 after. Kernels for it visit only the taps that meet an input; no inserted
// zero is multiplied.
#pragma once
#include <memory>
#include <vector>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "nets/dcgan/weights.h"

namespace cosmati::dcgan {

// Filters and biases with the batch normalisation folded in: what is left to compute at run time.
struct FoldedWeights {
  Tensor projection;           // (latent_size, 8192)
  Tensor projection_bias;      // (8192)
  Tensor filter[layer_count];  // (C, K, 5, 5) as a convolution's filter, C innermost in memory
  Tensor bias[layer_count];    // (K)
  explicit FoldedWeights(Weights const& weights);
};

// Prepared for batches of one size. Not for concurrent use: it owns the buffers between its layers.
class Generator {
 public:
  // `weights` outlives the generator.
  Generator(FoldedWeights const& weights, Device const& device, Index batch);
  Index batch() const { return batch_; }
  // z (batch, 100) -> images (batch, 64, 64, 3), values in [-1, 1]; host memory.
  void run(float const* z, float* images);

 private:
  FoldedWeights const& weights_;
  Index batch_;
  Prepared<GemmProblem> projection_;
  Prepared<ConvolutionProblem> layer_[layer_count];
  Tensor activation_[layer_count];  // inputs of the layers
  Tensor workspace_;
};

// All `count` latent vectors, in batches of at most `largest_batch`.
std::vector<float> generate(FoldedWeights const& weights, Device const& device, std::vector<float> const& z,
                            Index largest_batch = 64);

// count latent vectors, each number uniform in [-1, 1); the same for the same seed on every machine.
std::vector<float> random_latents(Index count, unsigned long long seed);

}  // namespace cosmati::dcgan
