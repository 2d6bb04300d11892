// Common checks of readers and writers of image files.
#pragma once
#include <cstddef>
#include <string>

#include "src/io/image/image.h"

namespace cosmati::io {

inline constexpr long long largest_image_extent = 16384;  // 2^28 pixels

// Throws Error(bad_file) unless both are 1 to 16384.
void check_image_extents(long long width, long long height, std::string const& name);

// Throws Error(bad_request) unless the number of pixels matches the extents and channels.
void check_image(Image const& image);

// Returns `value` blended with a background of level `page`; `alpha` is 0 to 255.
inline unsigned char over_page(unsigned value, unsigned alpha, unsigned page) {
  return static_cast<unsigned char>((value * alpha + page * (255 - alpha) + 127) / 255);
}

}  // namespace cosmati::io
