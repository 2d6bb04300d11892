// A canvas for the images that the program writes: text, lines, rectangles, other images.
#pragma once
#include <string_view>

#include "src/io/image/image.h"

namespace cosmati::io {

struct Color {
  unsigned char red = 0, green = 0, blue = 0;
};

inline constexpr Color black{0, 0, 0};
inline constexpr Color white{255, 255, 255};

// Pixel (0, 0) is at the top left. Drawing is clipped to the canvas.
class Canvas {
 public:
  Canvas(int width, int height, Color background);

  Image const& image() const { return image_; }
  int width() const { return image_.width; }
  int height() const { return image_.height; }

  void pixel(int x, int y, Color color);
  void fill_rectangle(int x, int y, int width, int height, Color color);
  void rectangle(int x, int y, int width, int height, Color color);  // its outline, one pixel wide
  void line(int from_x, int from_y, int to_x, int to_y, Color color);
  // Draws each pixel of `image` as a square of scale x scale pixels.
  void blit(Image const& image, int x, int y, int scale = 1);
  // Draws text with its top left at (x, y), in cells of 6 x 8 pixels times `scale`; '\n' begins a new line,
  // and characters other than printable ASCII are drawn as '?'.
  void text(int x, int y, std::string_view text, Color color, int scale = 1);

  static constexpr int line_height(int scale = 1) { return 8 * scale; }

 private:
  Image image_;
};

}  // namespace cosmati::io
