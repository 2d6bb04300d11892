// Tiles into a square.
#include "nets/dcgan/picture.h"

#include <algorithm>

#include "nets/dcgan/weights.h"

namespace cosmati::dcgan {

io::Image picture(float const* images, Index count) {
  int side = 1;
  while (static_cast<Index>(side) * side < count) ++side;
  int const size = static_cast<int>(image_size), channel_count = static_cast<int>(image_channels);
  io::Image result = io::make_image(side * size, side * size, channel_count);
  for (Index i = 0; i < count; ++i) {
    int const left = static_cast<int>(i % side) * size, top = static_cast<int>(i / side) * size;
    for (int y = 0; y < size; ++y) {
      float const* const row = images + i * image_elements + static_cast<Index>(y) * size * channel_count;
      std::transform(
          row, row + size * channel_count, &result.pixels[result.offset(left, top + y)], [](float x) {
            return static_cast<unsigned char>(std::clamp(static_cast<int>((x + 1) / 2 * 255), 0, 255));
          });
    }
  }
  return result;
}

}  // namespace cosmati::dcgan
