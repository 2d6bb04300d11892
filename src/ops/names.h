// Names of types and choices: aliases that other libraries use, and the message about an unknown name.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cosmati/ops/error.h"

namespace cosmati {

// Returns the index in `names` of `name`, or of the name that it is an alias of ("float32" of f32); -1 if
// there is none. '-' and '_' count as equal.
int find_name(std::string_view name, std::vector<std::string> const& names);

// Returns the entry of `names` that a misspelled `name` most likely means: the one with the smallest edit
// distance, to it or to one of its aliases. Empty if none is close.
std::string nearest_name(std::string_view name, std::vector<std::string> const& names);

// " (did you mean f32?)", or nothing if no name is close.
std::string did_you_mean(std::string_view name, std::vector<std::string> const& names);

// "unknown data type 'f31' (did you mean f32?); valid types: f64, f32". `heading` introduces the list.
std::string unknown_name(std::string_view kind, std::string_view name, std::vector<std::string> const& names,
                         std::string_view heading = "valid values");

// The names with their aliases, in the order of the table: {"f32", {"float32", "float", ...}}.
std::vector<std::pair<std::string, std::vector<std::string>>> all_aliases();
std::vector<std::string> aliases_of(std::string_view name);

// Returns the value, among the first `count` of Enumeration, whose name_of() is `name` or has the alias
// `name`. Throws Error(bad_request) with unknown_name's message.
template <class Enumeration>
Enumeration parse_name(char const* kind, std::string const& name, int count,
                       char const* heading = "valid values") {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(name_of(static_cast<Enumeration>(i)));
  int const index = find_name(name, names);
  if (index < 0) throw Error(ErrorCode::bad_request, unknown_name(kind, name, names, heading));
  return static_cast<Enumeration>(index);
}

}  // namespace cosmati
