// Shared memory as the hardware sees it: lines of 128 bytes, four of 32 banks (16 bytes) a column.
#pragma once
#include <string>

#include "tools/pictures/picture.h"

namespace cosmati::pictures {

inline constexpr int group_width = 56, line_height = 18, line_left = 76;

// The banks of each column, above lines that begin at y.
inline void bank_heads(Picture& picture, int y) {
  picture.text(line_left - 6, y - 5, Anchor::end, "banks", Size::small);
  for (int group = 0; group < 8; ++group)
    picture.text(line_left + group * group_width + group_width / 2, y - 5, Anchor::middle,
                 std::to_string(4 * group) + " to " + std::to_string(4 * group + 3), Size::small);
}

// The 16 bytes at `address` behind the first of the lines.
inline void sixteen_bytes(Picture& picture, int y, int address, Fill fill, std::string const& words) {
  picture.cell(line_left + address % 128 / 16 * group_width, y + address / 128 * line_height, group_width,
               line_height, fill, words);
}

}  // namespace cosmati::pictures
