// Generated images as one picture.
#pragma once
#include "cosmati/core/config.h"
#include "src/io/image/image.h"

namespace cosmati::dcgan {

// The smallest square grid of 64x64 tiles that holds `count` images, image 0 at the top left, row by row,
// black where there is no image; x in [-1, 1] becomes (int)((x + 1) / 2 * 255) in f32 (the report's rule).
// images (count, 64, 64, 3).
io::Image picture(float const* images, Index count);

// That rule for single values, and the grid of images (count, 64, 64, 3) to which it was applied: a square
// one, or as many rows of `columns` tiles as it takes.
void to_levels(float const* x, Index count, unsigned char* levels);
io::Image picture_of_tiles(unsigned char const* images, Index count, Index columns = 0);

// Images in a row of that grid.
Index columns_of_picture(Index count, Index columns);
// Images (count, 64, 64, 3) side by side as the rows of a BMP file: from the bottom up, blue before green
// before red. rows (64, count, 64, 3).
void to_bitmap_rows(unsigned char const* images, Index count, unsigned char* rows);

}  // namespace cosmati::dcgan
