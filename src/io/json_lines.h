// JSON Lines: one JSON value a line (https://jsonlines.org).
#pragma once
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cosmati::io {

// The value as one line, line end included. Bytes that are not UTF-8 become U+FFFD; NaN and infinities become
// null.
std::string json_line(nlohmann::json const& value);

// Adds the value to the file as a whole line, by one write, so that a reader never sees half of it; makes the
// file if there is none. After a last line that a crash has cut short, it begins a new one. Throws
// Error(system).
void append_json_line(std::string const& path, nlohmann::json const& value);

// The value of each line; empty lines are skipped. Throws Error(bad_file) that names the line, and for values
// nested deeper than 100.
std::vector<nlohmann::json> read_json_lines(std::string const& path);

// The same from text, one value at a time; `name` stands for the path in messages, lines count from 1.
void parse_json_lines(std::string_view text, std::string const& name,
                      std::function<void(std::size_t line, nlohmann::json&& value)> const& visit);

}  // namespace cosmati::io
