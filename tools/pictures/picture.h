// A picture of cells with words in them, as an SVG file of its own: for pages, and for who opens it alone.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace cosmati::pictures {

// Told apart by lightness as well as by hue, so that they survive gray paper and color blindness; words on
// `dark` are white.
enum class Fill { white, pale, warm, grey, dark };

enum class Anchor { start, middle, end };

enum class Size { small, plain, title };

// Lengths are in units of a picture that is at most 540 wide: a phone shows it whole, and words of ten units
// can be read there.
class Picture {
 public:
  // `description` is for those who cannot see the picture.
  Picture(std::string_view title, std::string_view description);

  Picture& cell(int x, int y, int width, int height, Fill fill, std::string_view words = {});
  Picture& frame(int x, int y, int width, int height);  // a thicker line around cells
  Picture& text(int x, int y, Anchor anchor, std::string_view words, Size size = Size::plain);
  Picture& line(int x1, int y1, int x2, int y2);

  std::string finish(int width, int height) const;  // the file

 private:
  std::string title_, description_;
  std::map<Fill, std::string> shapes_, words_;
  std::string frames_, lines_, texts_;
};

}  // namespace cosmati::pictures
