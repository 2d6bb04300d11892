// Common to the layers of a fused network: addresses in the block's shared memory, activation functions, sums
// over lanes.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/network/shape.h"
#include "cosmati/primitive/math.h"

namespace cosmati {

using Four = Vector<float, 4>;

template <FusedFunction function>
COSMATI_DEVICE float fused_value(float x) {
  if constexpr (function == FusedFunction::relu) return x > 0 ? x : 0.0f;
  if constexpr (function == FusedFunction::sigmoid) return 1.0f / (1.0f + exponential(-x));
  // 1.7159 tanh(2x/3), by tanh(z) = 1 - 2 / (exp(2z) + 1)
  if constexpr (function == FusedFunction::scaled_tanh)
    return 1.7159f - 3.4318f / (exponential(x * (4.0f / 3.0f)) + 1.0f);
  return x;
}

// Returns the gradient of x, given that of y = f(x).
template <FusedFunction function>
COSMATI_DEVICE float fused_derivative(float gradient, float y) {
  if constexpr (function == FusedFunction::relu) return y > 0 ? gradient : 0.0f;
  if constexpr (function == FusedFunction::sigmoid) return gradient * y * (1.0f - y);
  if constexpr (function == FusedFunction::scaled_tanh)
    return gradient * (2.0f / 3.0f) * (1.7159f - y * y / 1.7159f);
  return gradient;
}

// Returns a factor of a product, rounded if tensor cores multiply it.
template <bool tf32_>
COSMATI_DEVICE float fused_factor(float x) {
  if constexpr (tf32_) return arch::Narrow<tf32>::of(x).value;
  return x;
}

#if defined(__CUDACC__)
COSMATI_DEVICE float square_root(float x) { return sqrtf(x); }
#else
COSMATI_DEVICE float square_root(float x) { return __builtin_sqrtf(x); }
#endif

// Returns the sum over a group of `lanes` adjacent lanes to each of them; called by all lanes of the warp.
template <int lanes>
COSMATI_DEVICE float sum_of_lanes(float value) {
  COSMATI_UNROLL
  for (int mask = lanes / 2; mask > 0; mask /= 2) value += arch::exchange(value, mask);
  return value;
}

// Adds the values of `lanes` adjacent lanes and distributes the sums: afterwards the first values of lane l
// are the sums starting at index l * count / lanes, at least one. `count` is a power of two.
template <int lanes, int count>
COSMATI_DEVICE void distribute_sums(float (&value)[count], int lane) {
  COSMATI_UNROLL
  for (int mask = lanes / 2; mask > 0; mask /= 2) {
    int const kept = count * mask / lanes;
    bool const upper = (lane & mask) != 0;
    if (kept == 0) {
      value[0] += arch::exchange(value[0], mask);
      continue;
    }
    COSMATI_UNROLL
    for (int j = 0; j < count / 2; ++j) {
      if (j >= kept) continue;
      float const sent = upper ? value[j] : value[j + kept];
      value[j] = (upper ? value[j + kept] : value[j]) + arch::exchange(sent, mask);
    }
  }
}

// The block's shared memory. Images are numbered from 0 to network.images - 1.
template <FusedNetwork network>
struct FusedBlock {
  static constexpr FusedLayout at = layout_of(network);
  static constexpr int images = network.images, threads = network.threads, warps = threads / 32;
  static_assert(threads % 32 == 0, "a block consists of full warps");

  float* shared;

  template <int i>
  COSMATI_DEVICE float* value(int image) const {
    constexpr int image_size = at.image, first = at.value[i];
    return shared + image * image_size + first;
  }
  template <int i>
  COSMATI_DEVICE float* gradient(int image) const {
    constexpr int image_size = at.image, first = at.gradient[i];
    return shared + image * image_size + first;
  }
  template <int i>
  COSMATI_DEVICE unsigned short* positions(int image) const {
    constexpr int image_size = at.image, first = at.positions[i];
    return reinterpret_cast<unsigned short*>(shared + image * image_size + first);
  }
  // Whether value(i) is rounded to tf32.
  template <int i>
  static COSMATI_CONSTEXPR bool rounds() {
    if constexpr (i < network.layers) return network.layer[i].tf32;
    return false;
  }
  // The offset in value(i) of element (channel, row, column).
  template <int i>
  COSMATI_DEVICE static int element(int channel, int row, int column) {
    if constexpr (i < network.layers && network.layer[i].is_convolution()) {
      constexpr FusedLayer layer = network.layer[i];
      return channel * layer.plane() + (row + layer.padding) * layer.row() + column + layer.padding;
    } else if constexpr (i == 0) {
      constexpr FusedLayer layer = network.layer[0];
      return (channel * layer.height + row) * layer.width + column;
    } else {
      constexpr FusedLayer before = network.layer[i - 1];
      return channel * before.pixels() + row * before.columns() + column;
    }
  }
  // The offset in value(i) of output e of layer i - 1, in the order of gradient(i).
  template <int i>
  COSMATI_DEVICE static int element_of_output(int e) {
    constexpr FusedLayer before = network.layer[i - 1];
    return element<i>(e / before.pixels(), e % before.pixels() / before.columns(), e % before.columns());
  }
};

}  // namespace cosmati
