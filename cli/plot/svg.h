// Pictures as SVG inside a page, or alone, and text that is safe there. Colors and fonts are the page's:
// shapes only name classes.
#pragma once
#include <string>
#include <string_view>

namespace cosmati::cli {

// For text and attributes of HTML: & < > " ' as entities, control characters as U+FFFD.
std::string escaped(std::string_view text);

// One picture; lengths are in units of its own, (0, 0) at the top left.
class Svg {
 public:
  // `id` is the picture's alone in its page; `title` and `description` are for those who cannot see it.
  Svg(double width, double height, std::string const& id, std::string_view title,
      std::string_view description);

  Svg& line(double x1, double y1, double x2, double y2, std::string_view classes);
  Svg& bar(double x, double y, double width, double height, std::string_view classes);
  // `anchor`: "start", "middle" or "end" of the text is at x.
  Svg& text(double x, double y, std::string_view anchor, std::string_view text, std::string_view classes);
  // `shape` is a path around (0, 0).
  Svg& mark(double x, double y, std::string_view shape, std::string_view classes);

  // What lies between the two shows `title` where it is pointed at.
  Svg& begin_group(std::string_view title, std::string_view classes = {});
  Svg& end_group();

  std::string finish();
  // As a file of its own, whose classes are those of `style` (CSS, safe in XML).
  std::string finish_file(std::string_view style);

 private:
  std::string text_;
};

}  // namespace cosmati::cli
