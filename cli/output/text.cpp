// Parses and formats words and numbers of the command line.
#include "cli/output/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "cosmati/ops/error.h"
#include "src/ops/names.h"

namespace cosmati::cli {
namespace {

constexpr std::size_t max_combinations = 100000;

[[noreturn]] void refuse(std::string const& what, std::string_view text, std::string const& reason) {
  throw Error(ErrorCode::bad_request, what + " '" + std::string(text) + "': " + reason);
}

// All combinations of one number from each list, the last number changing fastest.
void append_combinations(std::vector<std::vector<Index>> const& places,
                         std::vector<std::vector<Index>>& result) {
  std::vector<std::vector<Index>> grown{{}};
  for (auto const& place : places) {
    std::vector<std::vector<Index>> next;
    for (auto const& head : grown)
      for (Index const value : place) {
        next.push_back(head);
        next.back().push_back(value);
      }
    grown = std::move(next);
  }
  result.insert(result.end(), grown.begin(), grown.end());
}

// The length in bytes and the code point of the UTF-8 character at `at`; 0 bytes if it is invalid.
struct Character {
  std::size_t bytes = 0;
  unsigned number = 0;
};

Character character_at(std::string_view text, std::size_t at) {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
  unsigned const first = byte(at);
  if (first < 0x80) return {1, first};
  std::size_t const bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + bytes > text.size()) return {};
  unsigned number = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80U) return {};
    number = number << 6 | (byte(at + i) & 0x3fU);
  }
  constexpr unsigned minimum[] = {0, 0, 0x80, 0x800, 0x10000};
  bool const surrogate = number >= 0xd800 && number < 0xe000;
  if (number < minimum[bytes] || number > 0x10ffff || surrogate) return {};
  return {bytes, number};
}

// Control characters of terminals and of bidirectional text.
bool is_control(unsigned number) {
  return number < 0x20 || (number >= 0x7f && number < 0xa0) || number == 0x200e || number == 0x200f ||
         (number >= 0x2028 && number <= 0x202e) || (number >= 0x2066 && number <= 0x2069);
}

std::string in_hexadecimal(char const* head, unsigned number, int digits) {
  std::string text = head;
  for (int i = digits - 1; i >= 0; --i) text += "0123456789abcdef"[number >> 4 * i & 15];
  return text;
}

std::string printable(std::string_view text, bool lines) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    auto const [bytes, number] = character_at(text, at);
    if (bytes == 0)
      result += in_hexadecimal("\\x", static_cast<unsigned char>(text[at]), 2);
    else if (is_control(number) && !(lines && (number == '\n' || number == '\t')))
      result += in_hexadecimal("\\u", number, 4);
    else
      result += text.substr(at, bytes);
    at += std::max<std::size_t>(bytes, 1);
  }
  return result;
}

}  // namespace

std::string printable_text(std::string_view text) { return printable(text, true); }
std::string printable_name(std::string_view text) { return printable(text, false); }

std::string shell_word(std::string const& word) {
  auto const needs_escape = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  auto const is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  bool const escapes = std::any_of(word.begin(), word.end(), needs_escape) || printable_name(word) != word;
  std::string quoted = escapes ? "$'" : "'";
  for (char const c : word)
    if (escapes && (c == '\'' || c == '\\'))
      quoted += std::string("\\") + c;
    else if (escapes && (needs_escape(c) || static_cast<unsigned char>(c) >= 0x80))
      quoted += in_hexadecimal("\\x", static_cast<unsigned char>(c), 2);
    else if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  return quoted + '\'';
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t const end = std::min(text.find(separator, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string join(std::vector<std::string> const& words, std::string_view separator) {
  std::string text;
  for (std::string const& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

Index parse_index(std::string_view text, std::string const& what) {
  Index value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) refuse(what, text, "the number does not fit in 64 bits");
  if (error != std::errc() || end != text.data() + text.size())
    refuse(what, text, "expected an integer, e.g. 2");
  return value;
}

double parse_number(std::string_view text, std::string const& what) {
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    refuse(what, text, "expected a number, e.g. 1.5");
  return value;
}

std::vector<Index> parse_indices(std::string_view text, std::string const& what) {
  std::vector<Index> values;
  for (std::string const& word : split(text, ',')) values.push_back(parse_index(word, what));
  return values;
}

std::vector<Index> parse_range(std::string_view text, std::string const& what) {
  std::vector<Index> values;
  for (std::string const& word : split(text, ',')) {
    auto const ends = split(word, ':');
    if (ends.size() > 3) refuse(what, text, "a range is first:last:step, e.g. 64:256:64");
    Index const first = parse_index(ends[0], what);
    Index const last = ends.size() > 1 ? parse_index(ends[1], what) : first;
    Index const step = ends.size() > 2 ? parse_index(ends[2], what) : 1;
    if (step < 1 || last < first)
      refuse(what, text,
             "the range " + word + " is empty: first:last:step needs first <= last and step >= 1");
    if (static_cast<std::size_t>((last - first) / step) + values.size() >= max_combinations)
      refuse(what, text, "the range has more than " + std::to_string(max_combinations) + " numbers");
    for (Index value = first; value <= last; value += step) values.push_back(value);
  }
  return values;
}

std::vector<std::vector<Index>> parse_sizes(std::string_view text, std::size_t fewest, std::size_t maximum,
                                            std::string const& form, std::string const& what) {
  auto const fits = [&](std::string_view size) {
    auto const count = static_cast<std::size_t>(std::count(size.begin(), size.end(), 'x')) + 1;
    return count >= fewest && count <= maximum;
  };
  auto sizes = split(text, ',');
  if (!std::all_of(sizes.begin(), sizes.end(), fits)) sizes = {std::string(text)};
  std::vector<std::vector<Index>> result;
  for (std::string const& size : sizes) {
    if (!fits(size)) refuse(what, text, "a size here is " + form);
    std::vector<std::vector<Index>> places;
    std::size_t combinations = 1;
    for (std::string const& place : split(size, 'x')) {
      places.push_back(parse_range(place, what));
      combinations *= places.back().size();
      if (combinations > max_combinations)
        refuse(what, text, "more than " + std::to_string(max_combinations) + " sizes");
    }
    append_combinations(places, result);
  }
  return result;
}

std::string one_of(std::string const& word, std::vector<std::string> const& candidates,
                   std::string const& what) {
  int const index = find_name(word, candidates);
  if (index < 0) throw Error(ErrorCode::bad_request, unknown_name(what, word, candidates));
  return candidates[static_cast<std::size_t>(index)];
}

std::string clock_time(double seconds) {
  auto const whole = static_cast<long long>(std::lround(std::max(seconds, 0.0)));
  return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                       : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

void refuse(std::string const& sentence) { throw Error(ErrorCode::bad_request, sentence); }

}  // namespace cosmati::cli
