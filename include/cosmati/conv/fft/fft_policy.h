// Compile-time choices of the kernels of fft.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// The factor that contains each line twice. A complex number is stored as real part, imaginary part. If X x W
// is the sum over the channels of X conj(W), the lines of one factor are written twice, so that the product
// of two real matrices has real and imaginary parts: (Re X, Im X) and (Im X, -Re X) of the image, or (Re W,
// Im W) and (-Im W, Re W) of the filter.
enum class FftDoubled : unsigned char { image, filter };

struct FftPlanesPolicy {
  bool across = false;  // the lanes of a warp read across planes
};

struct FftFactorPolicy {
  bool twice = false;  // each line is written twice, as for the doubled factor
  FftDoubled doubled = FftDoubled::image;
};

struct FftSumsPolicy {
  FftDoubled doubled = FftDoubled::image;
};

struct FftResultPolicy {
  bool across = false;     // the lanes of a warp write across planes
  bool image_is_a = true;  // m of the result is the pixel
};

}  // namespace cosmati
