// The parameters of the DCGAN generator: their names and shapes, and the files that hold them.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/tensor.h"
#include "nets/dcgan/architecture.h"

namespace cosmati::dcgan {

inline constexpr double batch_norm_epsilon = 1e-5;

struct Weight {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

// A generator of 64x64 images with hidden channels c0, c1, c2, c3, in the order of network.bin: proj_w (100,
// 16 c0), proj_b (16 c0), bn0_{beta, gamma, mean, var} (c0); for i = 1..3 tconv<i>_w (5, 5, K, C), tconv<i>_b
// (K), bn<i>_{beta, gamma, mean, var} (K); tconv4_w (5, 5, 3, c3), tconv4_b (3). K output channels, C input
// channels. The report's network has 512, 256, 128 and 64 hidden channels: 5,137,283 numbers in all.
class Weights {
 public:
  // Reads a safetensors file with these names, f32 or f16, whose filters determine the hidden channels (other
  // tensors are ignored), or a headerless network.bin (little-endian f32) of the report's network; which of
  // them is determined by its contents. Throws Error(bad_file): wrong size, a number that is not finite, a
  // negative variance, a tensor whose shape does not match the others.
  static Weights read(std::string const& path);
  void write_safetensors(std::string const& path) const;
  Architecture const& architecture() const { return architecture_; }
  // All numbers in the order of network.bin, and back, for sending them to other processes.
  std::vector<float> all() const;
  static Weights from(Architecture const& architecture, std::vector<float> const& all);
  static std::size_t number_count(Architecture const& architecture);

  std::vector<float> const& operator[](std::string const& name) const;

 private:
  explicit Weights(Architecture const& architecture);  // without values
  void check(std::string const& path) const;
  Architecture architecture_;
  std::vector<Weight> list_;
};

}  // namespace cosmati::dcgan
