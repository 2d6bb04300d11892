// Which of the row normalizations a pass computes.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// Bits of PrimitivePolicy::operation, beyond the numbers of RowOperation. Inputs of forward: x, weight, bias;
// outputs: y, mean (unless rms), inverse. Inputs of a gradient: x, dy, mean (unless rms), inverse, weight;
// output: dx. Weight, bias and saved statistics are present if their bits are set. scalar[0] = 1 / elements
// of a row, scalar[1] = epsilon. A gradient with one of the last two bits also sums the gradients of weight
// and bias over the rows of each block.
struct NormOperation {
  static constexpr int norm = 8, rms = 16, gradient = 32, weight = 64, bias = 128, saves = 256;
  static constexpr int sums_weight = 512, sums_bias = 1024;
};

// Resident blocks per multiprocessor for a gradient that also sums the gradients of weight and bias. A thread
// has two sums for each of its columns, of which there are at most norm_gradient_columns.
inline constexpr int norm_gradient_columns = 16;
COSMATI_CONSTEXPR int norm_gradient_blocks(int threads, int columns) {
  return (columns <= 8 ? 1024 : 512) / threads;
}

}  // namespace cosmati
