// Determines which of the embedded headers a source needs.
#include "src/jit/embedded.h"

#include <algorithm>

namespace cosmati::jit {
namespace {

void skip_blanks(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
}

// The name in `#include "name"`; empty if the line is not such a directive.
std::string_view included_by(std::string_view line) {
  skip_blanks(line);
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip_blanks(line);
  constexpr std::string_view word = "include";
  if (!line.starts_with(word)) return {};
  line.remove_prefix(word.size());
  skip_blanks(line);
  if (!line.starts_with('"')) return {};
  line.remove_prefix(1);
  return line.substr(0, line.find('"'));
}

Header const* find(std::string_view path) {
  for (Header const& header : embedded_headers())
    if (header.path == path) return &header;
  return nullptr;
}

void add_included(std::string_view text, std::vector<Header const*>& found) {
  while (!text.empty()) {
    std::size_t const end = std::min(text.find('\n'), text.size());
    Header const* const header = find(included_by(text.substr(0, end)));
    if (header != nullptr && std::find(found.begin(), found.end(), header) == found.end())
      found.push_back(header);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::vector<Header const*> reachable_headers(std::string_view source) {
  std::vector<Header const*> found;
  add_included(source, found);
  for (std::size_t next = 0; next < found.size(); ++next) add_included(found[next]->text, found);
  return found;
}

}  // namespace cosmati::jit
