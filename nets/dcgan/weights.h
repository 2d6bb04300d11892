// The numbers of the DCGAN generator: their names and shapes, and the files that they come in.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/tensor.h"

namespace cosmati::dcgan {

inline constexpr Index latent_size = 100;  // z
inline constexpr Index first_size = 4;     // rows and columns after the projection
inline constexpr int layer_count = 4;      // transposed convolutions; each doubles rows and columns
inline constexpr Index filter_size = 5;
inline constexpr Index channels[layer_count + 1] = {512, 256, 128, 64, 3};  // before and after each of them
inline constexpr Index image_size = first_size << layer_count;              // 64
inline constexpr Index image_channels = channels[layer_count];
inline constexpr Index image_elements = image_size * image_size * image_channels;
inline constexpr double batch_norm_epsilon = 1e-5;

struct Weight {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

// In the order of network.bin: proj_w (100, 8192), proj_b (8192), bn0_{beta, gamma, mean, var} (512); for i
// = 1..3 tconv<i>_w (5, 5, K, C), tconv<i>_b (K), bn<i>_{beta, gamma, mean, var} (K); tconv4_w (5, 5, 3, 64),
// tconv4_b (3). K output channels, C input channels; 5,137,283 numbers in all.
class Weights {
 public:
  // Reads a safetensors file with these names, f32 or f16 (other tensors are passed over), or a headerless
  // network.bin (little-endian f32), told by its contents. Throws Error(bad_file): wrong size, a number that
  // is not finite, a negative variance, a tensor of another shape.
  static Weights read(std::string const& path);
  void write_safetensors(std::string const& path) const;
  // All numbers in the order of network.bin, and back, between processes.
  std::vector<float> all() const;
  static Weights from(std::vector<float> const& all);
  static std::size_t number_count();

  std::vector<float> const& operator[](std::string const& name) const;

 private:
  Weights();
  void check(std::string const& path) const;
  std::vector<Weight> list_;
};

}  // namespace cosmati::dcgan
