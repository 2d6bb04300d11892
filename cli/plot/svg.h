// SVG pictures, embedded in a page or standalone, with escaped text. Shapes only name CSS classes; the page
// defines colors and fonts.
#pragma once
#include <string>
#include <string_view>

namespace cosmati::cli {

// Escapes text and attributes of HTML: & < > " ' as entities, control characters as U+FFFD.
std::string escaped(std::string_view text);

// One picture; lengths are in its own units, (0, 0) is at the top left.
class Svg {
 public:
  // `id` is unique within the page; `title` and `description` are for screen readers.
  Svg(double width, double height, std::string const& id, std::string_view title,
      std::string_view description);

  Svg& line(double x1, double y1, double x2, double y2, std::string_view classes);
  Svg& bar(double x, double y, double width, double height, std::string_view classes);
  // The "start", "middle" or "end" of the text (`anchor`) is at x.
  Svg& text(double x, double y, std::string_view anchor, std::string_view text, std::string_view classes);
  // `shape` is a path centered at (0, 0).
  Svg& mark(double x, double y, std::string_view shape, std::string_view classes);

  // Shapes between begin_group() and end_group() show `title` as a tooltip.
  Svg& begin_group(std::string_view title, std::string_view classes = {});
  Svg& end_group();

  std::string finish();
  // The picture as a standalone file with the CSS `style`, which must be safe in XML.
  std::string finish_file(std::string_view style);

 private:
  std::string text_;
};

}  // namespace cosmati::cli
