// The canvas.
#include "src/io/draw.h"

#include <gtest/gtest.h>

#include <set>

#include "src/io/font.h"
#include "tests/io/testing.h"

namespace cosmati::io {
namespace {

constexpr Color ink{200, 100, 50};

// The canvas as text, '#' where a pixel has the ink's color.
std::vector<std::string> seen(Canvas const& canvas) {
  std::vector<std::string> rows;
  for (int y = 0; y < canvas.height(); ++y) {
    std::string row;
    for (int x = 0; x < canvas.width(); ++x) {
      unsigned char const* const pixel = canvas.image().pixels.data() + canvas.image().offset(x, y);
      row += pixel[0] == ink.red && pixel[1] == ink.green && pixel[2] == ink.blue ? '#' : '.';
    }
    rows.push_back(row);
  }
  return rows;
}

using Rows = std::vector<std::string>;

TEST(Canvas, BeginsWithItsBackground) {
  Canvas const canvas(2, 1, {1, 2, 3});
  EXPECT_EQ(canvas.image().pixels, (std::vector<unsigned char>{1, 2, 3, 1, 2, 3}));
}

TEST(Canvas, Rectangles) {
  Canvas canvas(5, 4, white);
  canvas.rectangle(0, 0, 4, 3, ink);
  EXPECT_EQ(seen(canvas), (Rows{"####.", "#..#.", "####.", "....."}));
  canvas.fill_rectangle(3, 2, 100, 100, ink);
  EXPECT_EQ(seen(canvas), (Rows{"####.", "#..#.", "#####", "...##"}));
}

TEST(Canvas, Lines) {
  Canvas canvas(4, 4, black);
  canvas.line(0, 0, 3, 3, ink);
  canvas.line(3, 0, 3, 0, ink);
  EXPECT_EQ(seen(canvas), (Rows{"#..#", ".#..", "..#.", "...#"}));
}

TEST(Canvas, LinesFromFarOutsideAreCut) {
  Canvas canvas(4, 3, black);
  canvas.line(-2000000000, 1, 2000000000, 1, ink);
  EXPECT_EQ(seen(canvas), (Rows{"....", "####", "...."}));
  canvas.line(2, 2000000000, 2, -2000000000, ink);
  EXPECT_EQ(seen(canvas), (Rows{"..#.", "####", "..#."}));
  canvas.line(-5, -5, -1, 100, ink);
  canvas.line(100, 0, 200, 0, ink);
  EXPECT_EQ(seen(canvas), (Rows{"..#.", "####", "..#."}));
}

TEST(Canvas, CuttingDoesNotMoveTheEndsOfALine) {
  Canvas whole(40, 40, black);
  whole.line(10 - 7, 10 - 3, 10 + 25, 10 + 11, ink);
  Canvas cut(20, 15, black);
  cut.line(-7, -3, 25, 11, ink);
  Rows const rows = seen(whole);
  Rows const cut_rows = seen(cut);
  for (std::size_t y = 0; y < 15; ++y) EXPECT_EQ(cut_rows[y], rows[y + 10].substr(10, 20));
}

TEST(Canvas, Text) {
  Canvas canvas(12, 8, white);
  canvas.text(0, 0, "A1", ink);
  EXPECT_EQ(seen(canvas), (Rows{".###....#...", "#...#..##...", "#...#...#...", "#####...#...",
                                "#...#...#...", "#...#...#...", "#...#..###..", "............"}));
}

TEST(Canvas, TextIsScaledCutAndBroken) {
  Canvas canvas(12, 20, white);
  canvas.text(0, 0, "|\n-", ink, 2);
  Rows const rows = seen(canvas);
  EXPECT_EQ(rows[0], "....##......");
  EXPECT_EQ(rows[13], "....##......");
  EXPECT_EQ(rows[14], "............");
  canvas.text(-3, 19, "\xff\x01 W", ink);
}

TEST(Canvas, BlitsGrayAndColor) {
  Canvas canvas(4, 2, black);
  Image gray = make_image(1, 1, 1);
  gray.pixels = {7};
  Image color = make_image(1, 1, 3);
  color.pixels = {200, 100, 50};
  canvas.blit(gray, 0, 0);
  canvas.blit(color, 2, 0, 2);
  EXPECT_EQ(canvas.image().pixels[0], 7);
  EXPECT_EQ(canvas.image().pixels[2], 7);
  EXPECT_EQ(seen(canvas), (Rows{"..##", "..##"}));
}

TEST(Font, EveryCharacterHasAGlyphOfItsOwn) {
  std::set<std::string> glyphs_seen;
  for (char character = first_glyph;; ++character) {
    std::string const rows = glyphs[character - first_glyph];
    EXPECT_EQ(rows.size(), 7u * 6 - 1) << character;
    EXPECT_TRUE(glyphs_seen.insert(rows).second) << character;
    if (character == last_glyph) break;
  }
  EXPECT_EQ(glyphs_seen.size(), std::size(glyphs));
}

}  // namespace
}  // namespace cosmati::io
