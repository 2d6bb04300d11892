// Training pictures: square, of one size, from an IDX set or a folder of PNGs.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::dcgan {

// Gray pictures (of IDX sets) are tinted on access: picture i has the hue that is the fractional part of i
// times the golden ratio, so that any run of pictures covers the circle of hues evenly, at saturation 0.6 and
// value 1; a pixel is its gray level times that color. The background stays black.
struct Pictures {
  Index count = 0;
  Index size = 0;                     // rows and columns
  Index channels = 1;                 // 1: gray, tinted on access; 3: red, green, blue
  std::string source;                 // for messages: the files that were read
  std::vector<unsigned char> pixels;  // (count, size, size, channels)

  // Returns picture i as (size, size, 3), 0 to 255.
  void draw(Index i, unsigned char* target) const;
};

// The color of a hue (0..1) at saturation 0.6 and value 1; each component 0..1.
struct Tint {
  double red, green, blue;
};
Tint tint_of(Index picture);

// `path`: a folder with train-images-idx3-ubyte, or with .gz appended; one such file; or a folder of PNG
// files, read in the order of their names. Pictures are cropped to their central square, then resized to size
// x size, bilinearly or, if reduced, by areas. Throws Error(bad_file).
Pictures read_pictures(std::string const& path, Index size, int threads);

}  // namespace cosmati::dcgan
