// Reads the lines of a description.
#include "src/ops/description_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "cosmati/ops/error.h"

namespace cosmati {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr char const* blanks = " \t\r";
  auto const first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

constexpr std::uintmax_t largest_description = 65536;  // bytes

}  // namespace

bool DescriptionFile::exists(std::string const& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

void DescriptionFile::read(std::function<void(std::string const&, std::string_view)> const& take) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path_, error)) refuse("is not a regular file");
  if (auto const bytes = std::filesystem::file_size(path_, error); bytes > largest_description)
    refuse(fmt::format("has {} bytes; a description has at most {}", bytes, largest_description));
  std::ifstream file(path_);
  if (!file) refuse("cannot be opened");
  for (std::string line; std::getline(file, line);) {
    ++line_;
    std::string_view const text = trimmed(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    auto const equals = text.find('=');
    if (equals == std::string_view::npos) refuse(fmt::format("'{}' is not of the form key = value", text));
    std::string const key(trimmed(text.substr(0, equals)));
    if (!given_.insert(key).second) refuse(key + " is given twice");
    take(key, trimmed(text.substr(equals + 1)));
  }
  if (file.bad()) refuse("cannot be read");
  line_ = 0;
}

void DescriptionFile::need(std::string const& key) const {
  if (!has(key)) refuse(key + " is missing");
}

void DescriptionFile::refuse(std::string const& what) const {
  throw Error(ErrorCode::bad_file, path_ + (line_ > 0 ? ":" + std::to_string(line_) : "") + ": " + what);
}

void DescriptionFile::parse(std::string const& key, std::string_view value, double& number) const {
  auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !(number > 0) || !std::isfinite(number))
    refuse(fmt::format("{} = {}; expected a positive number", key, value));
}

double DescriptionFile::whole_number(std::string const& key, std::string_view value, double limit) const {
  double number = 0;
  parse(key, value, number);
  if (number != std::floor(number) || !(number < limit))
    refuse(fmt::format("{} = {}; expected an integer below {:.0f}", key, value, limit));
  return number;
}

void DescriptionFile::parse(std::string const& key, std::string_view value, int& number) const {
  number = static_cast<int>(whole_number(key, value, 0x1p31));
}
void DescriptionFile::parse(std::string const& key, std::string_view value, long long& number) const {
  number = static_cast<long long>(whole_number(key, value, 0x1p53));
}

}  // namespace cosmati
