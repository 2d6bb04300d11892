// Parses options of the C interface.
#include "src/c_api/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

#include "src/c_api/status.h"
#include "src/ops/names.h"

namespace cosmati::c_api {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr char const* blanks = " \t\r\n";
  auto const first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// Parses the complete text as a number; returns false if that fails.
template <class Number>
bool parse(std::string const& text, Number& number) {
  char const* const end = text.data() + text.size();
  auto const [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

}  // namespace

Options::Options(char const* text, std::initializer_list<char const*> legal) {
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    auto const semicolon = rest.find(';');
    std::string_view const entry = trimmed(rest.substr(0, semicolon));
    rest = semicolon == std::string_view::npos ? std::string_view() : rest.substr(semicolon + 1);
    if (entry.empty()) continue;
    auto const equals = entry.find('=');
    if (equals == std::string_view::npos)
      refuse(fmt::format("the option '{}' is not of the form key=value; valid keys: {}", entry,
                         fmt::join(legal, ", ")));
    std::string key(trimmed(entry.substr(0, equals)));
    if (std::find(legal.begin(), legal.end(), key) == legal.end())
      refuse(unknown_name("option", key, {legal.begin(), legal.end()}, "valid options"));
    if (find(key.c_str()) != nullptr) refuse(fmt::format("the option {} is given twice", key));
    entries_.push_back({std::move(key), std::string(trimmed(entry.substr(equals + 1)))});
  }
}

std::string const* Options::find(char const* key) const {
  for (Entry const& entry : entries_)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

std::size_t Options::whole(char const* key, std::size_t otherwise, std::size_t largest) const {
  std::string const* const text = find(key);
  if (text == nullptr) return otherwise;
  std::size_t number = 0;
  if (!parse(*text, number) || number > largest)
    refuse(fmt::format("the option {}={}; expected an integer from 0 to {}", key, *text, largest));
  return number;
}

double Options::positive(char const* key, double otherwise) const {
  std::string const* const text = find(key);
  if (text == nullptr) return otherwise;
  double number = 0;
  if (!parse(*text, number) || !(number > 0) || !std::isfinite(number))
    refuse(fmt::format("the option {}={}; expected a positive number", key, *text));
  return number;
}

bool Options::yes(char const* key, bool otherwise) const {
  std::string const* const text = find(key);
  if (text == nullptr) return otherwise;
  if (*text != "yes" && *text != "no")
    refuse(fmt::format("the option {}={} is invalid; valid values: yes or no", key, *text));
  return *text == "yes";
}

}  // namespace cosmati::c_api
