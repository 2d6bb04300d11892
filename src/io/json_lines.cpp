// Reads and writes JSON Lines.
#include "src/io/json_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/io/bad_file.h"
#include "src/io/file.h"

namespace cosmati::io {
namespace {

constexpr int deepest = 100;
constexpr std::size_t longest_line = std::size_t{4} << 20;  // bytes

nlohmann::json parse_line(std::string_view line, std::string const& where) {
  using Json = nlohmann::json;
  if (line.size() > longest_line)
    bad_file(where,
             "has " + std::to_string(line.size()) + " bytes; the limit is " + std::to_string(longest_line));
  auto const limit_depth = [&](int depth, Json::parse_event_t event, Json&) {
    if (depth >= deepest &&
        (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start))
      bad_file(where, "a value is nested deeper than " + std::to_string(deepest));
    return true;
  };
  try {
    return Json::parse(line.begin(), line.end(), limit_depth);
  } catch (Json::parse_error const& error) {
    bad_file(where, "is not valid JSON at column " + std::to_string(error.byte));
  } catch (Json::out_of_range const&) {
    bad_file(where, "holds a number that is too large");
  }
}

}  // namespace

std::string json_line(nlohmann::json const& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

void parse_json_lines(std::string_view text, std::string const& name,
                      std::function<void(std::size_t line, nlohmann::json&& value)> const& visit) {
  for (std::size_t line = 1; !text.empty(); ++line) {
    std::size_t const length = std::min(text.find('\n'), text.size());
    std::string_view const content = text.substr(0, length);
    if (content.find_first_not_of(" \t\r") != std::string_view::npos)
      visit(line, parse_line(content, name + ", line " + std::to_string(line)));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
}

}  // namespace cosmati::io
