// Formats the compiler's log with the source lines that it refers to.
#include "src/jit/compiler_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <vector>

namespace cosmati::jit {
namespace {

constexpr std::size_t longest_log = 12000;  // a template error can be very long

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::size_t const end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Adds each number n that appears in `text` between `before` and `after`.
void add_line_numbers(std::string_view text, std::string const& before, std::string_view after,
                      std::set<std::size_t>& numbers) {
  for (std::size_t at = text.find(before); at != std::string_view::npos; at = text.find(before, at + 1)) {
    std::string_view const rest = text.substr(at + before.size());
    std::size_t number = 0;
    auto const [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc() && rest.substr(static_cast<std::size_t>(end - rest.data())).starts_with(after))
      numbers.insert(number);
  }
}

}  // namespace

std::string explain_log(std::string_view log, std::string_view source) {
  std::string text(log);
  std::set<std::size_t> named;
  add_line_numbers(text, fmt::format("{}(", composed_name), ")", named);
  add_line_numbers(text, "at line ", fmt::format(" of {}", composed_name), named);
  if (text.size() > longest_log) {
    text.resize(longest_log);
    text += "\n...";
  }
  std::vector<std::string_view> const lines = lines_of(source);
  for (std::size_t number : named)
    if (number >= 1 && number <= lines.size())
      text += fmt::format("\n{}({}) is: {}", composed_name, number, lines[number - 1]);
  return text;
}

}  // namespace cosmati::jit
