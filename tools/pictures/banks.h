// Shared memory in pictures: lines of 128 bytes, with four of the 32 banks (16 bytes) per column.
#pragma once
#include <string>

#include "tools/pictures/picture.h"

namespace cosmati::pictures {

inline constexpr int group_width = 56, line_height = 18, line_left = 76;

// Prints the banks of each column above lines that begin at y.
inline void bank_heads(Picture& picture, int y) {
  picture.text(line_left - 6, y - 5, Anchor::end, "banks", Size::small);
  for (int group = 0; group < 8; ++group)
    picture.text(line_left + group * group_width + group_width / 2, y - 5, Anchor::middle,
                 std::to_string(4 * group) + " to " + std::to_string(4 * group + 3), Size::small);
}

// Draws the 16 bytes at `address`, relative to the first line.
inline void sixteen_bytes(Picture& picture, int y, int address, Fill fill, std::string const& words) {
  picture.cell(line_left + address % 128 / 16 * group_width, y + address / 128 * line_height, group_width,
               line_height, fill, words);
}

}  // namespace cosmati::pictures
