// JSON Lines: one JSON value per line (https://jsonlines.org).
#pragma once
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace cosmati::io {

// Returns the value as one line, including the line end. Bytes that are not UTF-8 become U+FFFD; NaN and
// infinities become null.
std::string json_line(nlohmann::json const& value);

// Calls visit for the value of each line that is not empty; lines count from 1. Throws Error(bad_file) with
// `name` and the line, also for values nested deeper than 100.
void parse_json_lines(std::string_view text, std::string const& name,
                      std::function<void(std::size_t line, nlohmann::json&& value)> const& visit);

}  // namespace cosmati::io
