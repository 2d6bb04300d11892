// Data that expose incorrect kernels that pass with normally distributed numbers.
#pragma once
#include <string>

#include "cosmati/ops/tensor.h"
#include "nets/random.h"

namespace cosmati::cli {

enum class HardData : unsigned char {
  none,
  magnitudes,  // both signs, logarithmically uniform over many orders of magnitude
  huge,        // normally distributed numbers and one huge element
  denormals,   // every other element is subnormal
  nonfinite,   // normally distributed numbers, with NaN and infinities in up to three elements or in one line
               // of an array
  constant,    // the same number along one axis
  cancellation,  // large numbers whose sum is 0, and small ones among them
};

char const* name_of(HardData kind);
HardData draw_hard_data(nets::Random& random);  // any kind but `none`

// Numbers are at most `largest`, and small enough that no sum of their products overflows. Slots that must be
// positive stay positive. Integers get the same kinds if their type allows it.
void fill_hard(Tensor& tensor, std::string const& slot, HardData kind, double largest, nets::Random& random);

}  // namespace cosmati::cli
