// Tiles into a square.
#include "nets/dcgan/picture.h"

#include <algorithm>
#include <vector>

#include "nets/dcgan/architecture.h"

namespace cosmati::dcgan {

void to_levels(float const* x, Index count, unsigned char* levels) {
  std::transform(x, x + count, levels, [](float value) {
    return static_cast<unsigned char>(std::clamp(static_cast<int>((value + 1) / 2 * 255), 0, 255));
  });
}

io::Image picture_of_tiles(unsigned char const* images, Index count, Index columns) {
  int side = 1;
  while (static_cast<Index>(side) * side < count) ++side;
  int const across = columns > 0 ? static_cast<int>(columns) : side;
  int const down = columns > 0 ? static_cast<int>((count + columns - 1) / columns) : side;
  int const size = static_cast<int>(image_size), channel_count = static_cast<int>(image_channels);
  io::Image result = io::make_image(across * size, down * size, channel_count);
  for (Index i = 0; i < count; ++i) {
    int const left = static_cast<int>(i % across) * size, top = static_cast<int>(i / across) * size;
    for (int y = 0; y < size; ++y)
      std::copy_n(images + i * image_elements + static_cast<Index>(y) * size * channel_count,
                  size * channel_count, &result.pixels[result.offset(left, top + y)]);
  }
  return result;
}

io::Image picture(float const* images, Index count) {
  std::vector<unsigned char> levels(static_cast<std::size_t>(count * image_elements));
  to_levels(images, count * image_elements, levels.data());
  return picture_of_tiles(levels.data(), count);
}

}  // namespace cosmati::dcgan
