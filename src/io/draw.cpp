// Drawing on an image in memory.
#include "src/io/draw.h"

#include <algorithm>
#include <cmath>

#include "src/io/font.h"
#include "src/io/image/image_checks.h"

namespace cosmati::io {
namespace {

constexpr int cell_width = glyph_width + 1;

// Removes the part of a segment where `direction` * t + `start` is negative; returns false if nothing
// remains.
bool clip(double start, double direction, double& begin, double& end) {
  if (direction == 0) return start >= 0;
  double const crossing = -start / direction;
  if (direction > 0)
    begin = std::max(begin, crossing);
  else
    end = std::min(end, crossing);
  return begin <= end;
}

}  // namespace

Canvas::Canvas(int width, int height, Color background) : image_(make_image(width, height, 3)) {
  fill_rectangle(0, 0, width, height, background);
}

void Canvas::pixel(int x, int y, Color color) {
  if (x < 0 || y < 0 || x >= image_.width || y >= image_.height) return;
  unsigned char* const to = image_.pixels.data() + image_.offset(x, y);
  to[0] = color.red;
  to[1] = color.green;
  to[2] = color.blue;
}

void Canvas::fill_rectangle(int x, int y, int width, int height, Color color) {
  long long const right = std::min<long long>(image_.width, static_cast<long long>(x) + width);
  long long const bottom = std::min<long long>(image_.height, static_cast<long long>(y) + height);
  for (int row = std::max(y, 0); row < bottom; ++row)
    for (int column = std::max(x, 0); column < right; ++column) pixel(column, row, color);
}

void Canvas::rectangle(int x, int y, int width, int height, Color color) {
  if (width < 1 || height < 1) return;
  fill_rectangle(x, y, width, 1, color);
  fill_rectangle(x, y + height - 1, width, 1, color);
  fill_rectangle(x, y, 1, height, color);
  fill_rectangle(x + width - 1, y, 1, height, color);
}

// Draws one pixel per step along the longer axis, after clipping the segment to the canvas (Liang and Barsky,
// 1984).
void Canvas::line(int from_x, int from_y, int to_x, int to_y, Color color) {
  double const dx = static_cast<double>(to_x) - from_x;
  double const dy = static_cast<double>(to_y) - from_y;
  double begin = 0;
  double end = 1;
  // A margin of one pixel, so that clipping does not move end points that are within the canvas.
  if (!clip(from_x + 1.0, dx, begin, end) ||
      !clip(image_.width - static_cast<double>(from_x), -dx, begin, end) ||
      !clip(from_y + 1.0, dy, begin, end) ||
      !clip(image_.height - static_cast<double>(from_y), -dy, begin, end))
    return;
  double const length = std::max(std::abs(dx), std::abs(dy));
  auto const last = static_cast<long long>(std::floor(end * length));
  for (auto step = static_cast<long long>(std::ceil(begin * length)); step <= last; ++step) {
    double const t = length == 0 ? 0 : static_cast<double>(step) / length;
    pixel(static_cast<int>(std::lround(from_x + t * dx)), static_cast<int>(std::lround(from_y + t * dy)),
          color);
  }
}

void Canvas::blit(Image const& image, int x, int y, int scale) {
  check_image(image);
  for (int row = 0; row < image.height; ++row)
    for (int column = 0; column < image.width; ++column) {
      unsigned char const* const from = image.pixels.data() + image.offset(column, row);
      bool const gray = image.channels == 1;
      fill_rectangle(x + column * scale, y + row * scale, scale, scale,
                     {from[0], from[gray ? 0 : 1], from[gray ? 0 : 2]});
    }
}

void Canvas::text(int x, int y, std::string_view text, Color color, int scale) {
  int const left = x;
  for (char character : text) {
    if (character == '\n') {
      x = left;
      y += line_height(scale);
      continue;
    }
    if (character < first_glyph || character > last_glyph) character = '?';
    for (int row = 0; row < glyph_height; ++row)
      for (int column = 0; column < glyph_width; ++column)
        if (glyph_pixel(character, column, row))
          fill_rectangle(x + column * scale, y + row * scale, scale, scale, color);
    x += cell_width * scale;
  }
}

}  // namespace cosmati::io
