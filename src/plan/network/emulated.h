// The fused networks in the emulator's catalogue.
#pragma once
#include "cosmati/network/shape.h"

namespace cosmati::plan {

// Images and threads per block in the emulator, where threads are slow and batches small.
inline constexpr int emulated_fused_images = 2;
constexpr int emulated_fused_threads(bool tf32) { return tf32 ? 128 : 64; }

inline constexpr int emulated_fused_bytes = 228 * 1024;

constexpr FusedNetwork with_parameters(FusedNetwork network, bool adam, bool team, bool tf32) {
  network.images = emulated_fused_images;
  network.threads = emulated_fused_threads(tf32);
  network.adam = adam;
  network.team = team;
  // The same layout as Parameters::allocate().
  int end = 0;
  auto const take = [&](int count) {
    int const begin = end;
    end += (count + 15) / 16 * 16;
    return begin;
  };
  for (int i = 0; i < network.layers; ++i) {
    network.layer[i].tf32 = tf32 && network.layer[i].is_convolution();
    network.layer[i].weight = take(network.layer[i].weights());
    if (!network.layer[i].gaussian) network.layer[i].bias = take(network.layer[i].maps);
  }
  return with_resident_weights(network, emulated_fused_bytes);
}

// The variants `modern` and `chapter`; tf32: those with SGD, on one device.
constexpr FusedNetwork emulated_lenet5(bool modern, bool adam, bool team = false, bool tf32 = false) {
  FusedNetwork network;
  network.layers = 5;
  FusedFunction const function = modern ? FusedFunction::relu : FusedFunction::sigmoid;
  network.layer[0] = {1, 28, 28, 6, 5, 2, 2, modern, function};
  network.layer[1] = {6, 14, 14, 16, 5, 0, 2, modern, function};
  network.layer[2] = {16, 5, 5, 120, 0, 0, 1, false, function};
  network.layer[3] = {120, 1, 1, 84, 0, 0, 1, false, function};
  network.layer[4] = {84, 1, 1, 10};
  network.layer[4].gaussian = !modern;
  return with_parameters(network, adam, team, tf32);
}

}  // namespace cosmati::plan
