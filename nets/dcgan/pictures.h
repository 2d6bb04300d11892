// Training pictures: square, of one size, from an IDX set or a folder of PNGs.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::dcgan {

// Gray pictures (of IDX sets) are tinted when they are drawn: picture i has the hue that is the fraction of i
// times the golden ratio, so that any run of pictures spreads evenly over the circle of hues, at saturation
// 0.6 and value 1; a pixel is its gray times that color. Background stays black.
struct Pictures {
  Index count = 0;
  Index size = 0;                     // rows and columns
  Index channels = 1;                 // 1: gray, to be tinted; 3: red, green, blue
  std::string source;                 // for people: what was read
  std::vector<unsigned char> pixels;  // (count, size, size, channels)

  // Picture i as (size, size, 3), 0 to 255.
  void draw(Index i, unsigned char* target) const;
};

// Red, green and blue of a color by hue (0..1), saturation 0.6 and value 1; each 0..1.
struct Tint {
  double red, green, blue;
};
Tint tint_of(Index picture);

// `path`: a folder with train-images-idx3-ubyte or that name with .gz; one such file; or a folder of PNG
// files, read in the order of their names. Pictures that are not square lose what is outside their middle
// square; then they are resized to size x size, bilinearly or, to be made smaller, by areas. Throws
// Error(bad_file).
Pictures read_pictures(std::string const& path, Index size, int threads);

}  // namespace cosmati::dcgan
