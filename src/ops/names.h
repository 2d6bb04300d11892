// From a name to the value of an enumeration, by the name_of of its values.
#pragma once
#include <algorithm>
#include <string>

#include "cosmati/ops/error.h"

namespace cosmati {

// The value among the first `count` of Enumeration that is called `name`; '-' and '_' are taken alike.
// Throws Error(bad_request): "'reluu' is no activation function; there are relu, ...".
template <class Enumeration>
Enumeration parse_name(char const* kind, std::string const& name, int count) {
  auto const plain = [](std::string text) {
    std::replace(text.begin(), text.end(), '-', '_');
    return text;
  };
  std::string legal;
  for (int i = 0; i < count; ++i) {
    auto const value = static_cast<Enumeration>(i);
    if (plain(name) == plain(name_of(value))) return value;
    legal += (i == 0 ? "" : ", ") + std::string(name_of(value));
  }
  throw Error(ErrorCode::bad_request, "'" + name + "' is no " + kind + "; there are " + legal);
}

}  // namespace cosmati
