// Tiles with swizzled 16-byte chunks: the positions of the rows that one access reads.
#include <string>

#include "cosmati/core/number.h"
#include "cosmati/tile/matrix_descriptor.h"
#include "cosmati/tile/swizzled_tile.h"
#include "tools/pictures/banks.h"
#include "tools/pictures/pictures.h"

namespace cosmati::pictures {
namespace {

std::string name_of_chunk(int row, int chunk) {
  return "r" + std::to_string(row) + " c" + std::to_string(chunk);
}

// Draws eight rows and returns where the next panel begins. Highlights the first chunk of each, which one
// access of the warp reads, and the second.
template <class Tile>
int panel(Picture& picture, int top, std::string const& heading) {
  constexpr int rows = 8;
  picture.text(12, top, Anchor::start, heading);
  int const y = top + 24;
  bank_heads(picture, y);
  for (int row = 0; row < rows; ++row)
    for (int chunk = 0; chunk < Tile::chunks; ++chunk)
      sixteen_bytes(picture, y, Tile::offset(row, 16 * chunk),
                    chunk == 0   ? Fill::dark
                    : chunk == 1 ? Fill::warm
                                 : Fill::white,
                    name_of_chunk(row, chunk));
  return y + rows * Tile::row_bytes / 128 * line_height + 26;
}

int tensor_panel(Picture& picture, int top, Swizzle swizzle) {
  int const span = span_of(swizzle), lines = 8;
  picture.text(12, top, Anchor::start,
               "CU_TENSOR_MAP_SWIZZLE_" + std::to_string(span) + "B: rows of " + std::to_string(span) +
                   " bytes, repeated every " + std::to_string(pattern_bytes(swizzle)) + " bytes");
  int const y = top + 24;
  bank_heads(picture, y);
  for (int line = 0; line < lines; ++line)
    for (int chunk = 0; chunk < span / 16; ++chunk)
      sixteen_bytes(picture, y, tile_offset(line, 16 * chunk, lines, swizzle),
                    chunk == 0   ? Fill::dark
                    : chunk == 1 ? Fill::warm
                                 : Fill::white,
                    name_of_chunk(line, chunk));
  return y + lines * span / 128 * line_height + 26;
}

}  // namespace

std::string swizzled_tiles() {
  Picture picture("Tiles of multistage, which ldmatrix reads without conflicts",
                  "Where the chunks of 16 bytes of each row lie in shared memory, for rows of 32, 64, 128 "
                  "and 256 bytes.");
  picture.text(12, 40, Anchor::start,
               "r3 c1: chunk 1 of row 3. Dark: read at the same time, from 32 different banks; orange: "
               "read next.");
  int y = 62;
  y = panel<SwizzledTile<f16, Along::k, 16, 8>>(picture, y, "Rows of 32 bytes (f16 along k, block_k 16)");
  y = panel<SwizzledTile<f16, Along::k, 32, 8>>(picture, y, "Rows of 64 bytes (f16 along k, block_k 32)");
  y = panel<SwizzledTile<f16, Along::k, 64, 8>>(picture, y, "Rows of 128 bytes (f16 along k, block_k 64)");
  y = panel<SwizzledTile<f16, Along::mn, 8, 128>>(picture, y,
                                                  "Rows of 256 bytes (f16 along m or n, 128 of them)");
  return picture.finish(540, y - 12);
}

std::string tensor_swizzles() {
  Picture picture(
      "Tiles that TMA writes and wgmma reads",
      "Where the chunks of 16 bytes of each row lie in shared memory, for the three swizzles of TMA.");
  picture.text(
      12, 40, Anchor::start,
      "r3 c1: chunk 1 of row 3. Dark: chunk 0 of eight rows, in 32 different banks; orange: chunk 1.");
  int y = 62;
  for (Swizzle const swizzle : {Swizzle::bytes32, Swizzle::bytes64, Swizzle::bytes128})
    y = tensor_panel(picture, y, swizzle);
  return picture.finish(540, y - 12);
}

}  // namespace cosmati::pictures
