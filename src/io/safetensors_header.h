// The JSON header of a safetensors file.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/io/raw_array.h"

namespace cosmati::io {

struct SafetensorsEntry {
  std::string name;
  ElementKind kind = ElementKind::f32;
  Shape shape;
  std::size_t begin = 0;  // bytes, from the end of the header
  std::size_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Checks the syntax of the header, not the offsets. Memory is proportional to the text; nesting needs none.
// Throws Error(bad_file) naming `file`.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::string const& file);

// Prints the entries in their order; throws Error(bad_request) for a string that is not UTF-8.
std::string print_safetensors_header(SafetensorsHeader const& header);

}  // namespace cosmati::io
