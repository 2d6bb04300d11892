// Data that expose errors of kernels which pass on normal numbers.
#pragma once
#include <string>

#include "cosmati/ops/tensor.h"
#include "nets/random.h"

namespace cosmati::cli {

enum class HardData : unsigned char {
  none,
  magnitudes,    // of both signs, logarithmically uniform over many orders of magnitude
  huge,          // normal numbers and one huge element
  denormals,     // every other element below the smallest normal number of its type
  nonfinite,     // normal numbers, and NaN and infinities in up to three places or one line of an array
  constant,      // one number along an axis
  cancellation,  // large numbers whose sum is 0, and small ones beside them
};

char const* name_of(HardData kind);
HardData draw_hard_data(nets::Random& random);  // any but none

// Numbers are at most `largest`, and small enough that no sum of their products overflows. Slots that must be
// positive by name remain positive. Integers have the same kinds in so far as their type does.
void fill_hard(Tensor& tensor, std::string const& slot, HardData kind, double largest, nets::Random& random);

}  // namespace cosmati::cli
