// The factor of fft's products that contains each line twice.
#pragma once
#include "cosmati/core/cxx20.h"

namespace cosmati {

// A complex number is stored as real part, imaginary part. If X x W is the sum over the channels of X
// conj(W), the lines of one factor are written twice, so that the product of two real matrices has real and
// imaginary parts: (Re X, Im X) and (Im X, -Re X) of the image, or (Re W, Im W) and (-Im W, Re W) of the
// filter.
enum class FftDoubled : unsigned char { image, filter };

}  // namespace cosmati
