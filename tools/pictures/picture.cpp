// Writes cells as few paths, and words as text.
#include "tools/pictures/picture.h"

#include <fmt/format.h>

#include "cli/plot/svg.h"

namespace cosmati::pictures {
namespace {

using cli::escaped;

// The picture has its own background, so that it is also readable on dark pages.
constexpr char style[] =
    "text{font:10px "
    "sans-serif;fill:#111}.m{text-anchor:middle}.e{text-anchor:end}.s{font-size:9px}.x{font-size:8px}"
    ".t{font-size:13px;font-weight:bold}.w text{fill:#fff;font-weight:bold}path{stroke:#666;stroke-width:.7}"
    ".f{fill:none;stroke:#111;stroke-width:1.6}.l{fill:none;stroke:#111;stroke-width:1}";

constexpr char const* color(Fill fill) {
  constexpr char const* colors[] = {"#ffffff", "#cfe4f5", "#fbd9a6", "#bdbdbd", "#12436d"};
  return colors[static_cast<int>(fill)];
}

// A letter is about six units wide.
constexpr bool is_tight(std::string_view words, int width) {
  return static_cast<int>(words.size()) * 6 > width;
}

constexpr char const* anchor_class(Anchor anchor) {
  return anchor == Anchor::start ? "" : anchor == Anchor::middle ? "m" : "e";
}

}  // namespace

Picture::Picture(std::string_view title, std::string_view description)
    : title_(title), description_(description) {}

Picture& Picture::cell(int x, int y, int width, int height, Fill fill, std::string_view words) {
  shapes_[fill] += fmt::format("M{} {}h{}v{}h{}z", x, y, width, height, -width);
  if (!words.empty())
    words_[fill] +=
        fmt::format("<text{} x=\"{}\" y=\"{}\">{}</text>\n", is_tight(words, width) ? " class=\"x\"" : "",
                    x + width / 2, y + height / 2 + 4, escaped(words));
  return *this;
}

Picture& Picture::frame(int x, int y, int width, int height) {
  frames_ += fmt::format("M{} {}h{}v{}h{}z", x, y, width, height, -width);
  return *this;
}

Picture& Picture::text(int x, int y, Anchor anchor, std::string_view words, Size size) {
  std::string classes = anchor_class(anchor);
  if (size != Size::plain) classes += size == Size::small ? " s" : " t";
  texts_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", classes, x, y, escaped(words));
  return *this;
}

Picture& Picture::line(int x1, int y1, int x2, int y2) {
  lines_ += fmt::format("M{} {}L{} {}", x1, y1, x2, y2);
  return *this;
}

std::string Picture::finish(int width, int height) const {
  std::string file = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "role=\"img\" aria-labelledby=\"title about\">\n<title id=\"title\">{2}</title>\n"
      "<desc id=\"about\">{3}</desc>\n<style>{4}</style>\n<rect width=\"{0}\" height=\"{1}\" rx=\"6\" "
      "fill=\"#f4f4f1\"/>\n",
      width, height, escaped(title_), escaped(description_), style);
  file += fmt::format("<text class=\"t\" x=\"12\" y=\"22\">{}</text>\n", escaped(title_));
  for (auto const& [fill, shapes] : shapes_)
    file += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", color(fill), shapes);
  for (auto const& [fill, words] : words_)
    file += fmt::format("<g class=\"m{}\">\n{}</g>\n", fill == Fill::dark ? " w" : "", words);
  if (!frames_.empty()) file += fmt::format("<path class=\"f\" d=\"{}\"/>\n", frames_);
  if (!lines_.empty()) file += fmt::format("<path class=\"l\" d=\"{}\"/>\n", lines_);
  return file + texts_ + "</svg>\n";
}

}  // namespace cosmati::pictures
