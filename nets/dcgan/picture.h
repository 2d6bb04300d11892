// Generated images as one picture.
#pragma once
#include "cosmati/core/config.h"
#include "src/io/image/image.h"

namespace cosmati::dcgan {

// Returns the smallest square grid of 64x64 tiles that holds `count` images, image 0 at the top left, row by
// row, black without an image; x in [-1, 1] becomes (int)((x + 1) / 2 * 255) in f32 (the report's rule).
// images (count, 64, 64, 3).
io::Image picture(float const* images, Index count);

// The same rule for values, and the grid of images (count, 64, 64, 3) to which it was applied: square, or
// with `columns` tiles per row.
void to_levels(float const* x, Index count, unsigned char* levels);
io::Image picture_of_tiles(unsigned char const* images, Index count, Index columns = 0);

// Returns the images per row of that grid.
Index columns_of_picture(Index count, Index columns);
// Arranges images (count, 64, 64, 3) side by side as the rows of a BMP file: from bottom to top, in the order
// blue, green, red. rows (64, count, 64, 3).
void to_bitmap_rows(unsigned char const* images, Index count, unsigned char* rows);

}  // namespace cosmati::dcgan
