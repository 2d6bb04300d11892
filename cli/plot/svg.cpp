// Writes pictures as SVG.
#include "cli/plot/svg.h"

#include <fmt/format.h>

namespace cosmati::cli {
namespace {

// One decimal suffices: a picture is a few hundred units wide.
std::string in_tenths(double length) { return fmt::format("{:.1f}", length); }

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (char const c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default:
        if ((c >= 0 && c < ' ') || c == '\x7f')
          safe += "\xef\xbf\xbd";
        else
          safe += c;
    }
  }
  return safe;
}

Svg::Svg(double width, double height, std::string const& id, std::string_view title,
         std::string_view description)
    : text_(fmt::format("<svg viewBox=\"0 0 {0} {1}\" role=\"img\" aria-labelledby=\"{2}-title {2}-about\">"
                        "<title id=\"{2}-title\">{3}</title><desc id=\"{2}-about\">{4}</desc>\n",
                        in_tenths(width), in_tenths(height), escaped(id), escaped(title),
                        escaped(description))) {}

Svg& Svg::line(double x1, double y1, double x2, double y2, std::string_view classes) {
  text_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", escaped(classes),
                       in_tenths(x1), in_tenths(y1), in_tenths(x2), in_tenths(y2));
  return *this;
}

Svg& Svg::bar(double x, double y, double width, double height, std::string_view classes) {
  text_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                       escaped(classes), in_tenths(x), in_tenths(y), in_tenths(width), in_tenths(height));
  return *this;
}

Svg& Svg::text(double x, double y, std::string_view anchor, std::string_view text, std::string_view classes) {
  text_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n",
                       escaped(classes), in_tenths(x), in_tenths(y), anchor, escaped(text));
  return *this;
}

Svg& Svg::mark(double x, double y, std::string_view shape, std::string_view classes) {
  text_ += fmt::format("<path class=\"{}\" transform=\"translate({} {})\" d=\"{}\"/>\n", escaped(classes),
                       in_tenths(x), in_tenths(y), escaped(shape));
  return *this;
}

Svg& Svg::begin_group(std::string_view title, std::string_view classes) {
  text_ += "<g" + (classes.empty() ? "" : " class=\"" + escaped(classes) + "\"") + "><title>" +
           escaped(title) + "</title>\n";
  return *this;
}

Svg& Svg::end_group() {
  text_ += "</g>\n";
  return *this;
}

std::string Svg::finish() { return text_ + "</svg>"; }

std::string Svg::finish_file(std::string_view style) {
  constexpr std::string_view begin = "<svg";
  std::size_t const behind_description = text_.find('\n') + 1;
  return fmt::format("{} xmlns=\"http://www.w3.org/2000/svg\"{}<style>{}</style>\n{}</svg>\n", begin,
                     std::string_view(text_).substr(begin.size(), behind_description - begin.size()), style,
                     std::string_view(text_).substr(behind_description));
}

}  // namespace cosmati::cli
