// Arranges tiles in a square.
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

Index columns_of_picture(Index count, Index columns) {
  Index side = 1;
  while (side * side < count) ++side;
  return columns > 0 ? columns : side;
}

void to_bitmap_rows(unsigned char const* images, Index count, unsigned char* rows) {
  constexpr Index row = image_size * image_channels;
  for (Index y = image_size - 1; y >= 0; --y)
    for (Index i = 0; i < count; ++i) {
      unsigned char const* const from = images + i * image_elements + y * row;
      for (Index x = 0; x < row; x += image_channels) {
        rows[x] = from[x + 2];
        rows[x + 1] = from[x + 1];
        rows[x + 2] = from[x];
      }
      rows += row;
    }
}

io::Image picture_of_tiles(unsigned char const* images, Index count, Index columns) {
  int const across = static_cast<int>(columns_of_picture(count, columns));
  int const down = columns > 0 ? static_cast<int>((count + columns - 1) / columns) : across;
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
