// A picture of cells with text in them, as a standalone SVG file.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace cosmati::pictures {

// The colors differ in lightness as well as in hue, for gray printing and color blindness; text on `dark` is
// white.
enum class Fill { white, pale, warm, gray, dark };

enum class Anchor { start, middle, end };

enum class Size { small, plain, title };

// Pictures are at most 540 units wide, so that a phone shows all of it with legible text of ten units.
class Picture {
 public:
  // `description` is for screen readers.
  Picture(std::string_view title, std::string_view description);

  Picture& cell(int x, int y, int width, int height, Fill fill, std::string_view words = {});
  Picture& frame(int x, int y, int width, int height);  // a thicker line around cells
  Picture& text(int x, int y, Anchor anchor, std::string_view words, Size size = Size::plain);
  Picture& line(int x1, int y1, int x2, int y2);

  std::string finish(int width, int height) const;  // the complete file

 private:
  std::string title_, description_;
  std::map<Fill, std::string> shapes_, words_;
  std::string frames_, lines_, texts_;
};

}  // namespace cosmati::pictures
