// JSON Lines: one JSON value per line (https://jsonlines.org).
#pragma once
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cosmati::io {

// Returns the value as one line, including the line end. Bytes that are not UTF-8 become U+FFFD; NaN and
// infinities become null.
std::string json_line(nlohmann::json const& value);

// Appends the value to the file as a complete line, by one write, so that readers never see a part of it;
// creates the file if necessary. After a last line truncated by a crash, it begins a new one. Throws
// Error(system).
void append_json_line(std::string const& path, nlohmann::json const& value);

// Returns the value of each line, skipping empty lines. Throws Error(bad_file) naming the line, also for
// values nested deeper than 100.
std::vector<nlohmann::json> read_json_lines(std::string const& path);

// The same from text, one value at a time; messages use `name` in place of the path, and lines count from 1.
void parse_json_lines(std::string_view text, std::string const& name,
                      std::function<void(std::size_t line, nlohmann::json&& value)> const& visit);

}  // namespace cosmati::io
