// Which factor of fft's products contains each line twice.
#pragma once
#include "cosmati/core/cxx20.h"

namespace cosmati {

// A complex number is two neighbors, real part first. With X x W the sum over the channels of X conj(W), the
// lines of one factor are written twice, so that the product of two matrices of real numbers has real parts
// and imaginary parts: (Re X, Im X) and (Im X, -Re X) of the image, or (Re W, Im W) and (-Im W, Re W) of the
// filter.
enum class FftDoubled : unsigned char { image, filter };

}  // namespace cosmati
