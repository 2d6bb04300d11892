// Which of the row normalizations a pass computes.
#pragma once
#include "cosmati/core/cxx20.h"

namespace cosmati {

// Bits of PrimitivePolicy::operation, beyond the numbers of RowOperation. Inputs of forward: x, weight, bias;
// outputs: y, mean (unless rms), inverse. Inputs of a gradient: x, dy, mean (unless rms), inverse, weight;
// output: dx. Weight, bias and saved statistics are present if their bits are set. scalar[0] = 1 / elements
// of a row, scalar[1] = epsilon.
struct NormOperation {
  static constexpr int norm = 8, rms = 16, gradient = 32, weight = 64, bias = 128, saves = 256;
};

}  // namespace cosmati
