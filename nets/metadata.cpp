// Parses numbers strictly.
#include "nets/metadata.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "cosmati/ops/error.h"

namespace cosmati::nets {
namespace {

std::string const& text_of(Metadata const& metadata, std::string const& key, std::string const& path) {
  auto const entry = metadata.find(key);
  if (entry == metadata.end())
    throw Error(ErrorCode::bad_file,
                path + ": its metadata has no '" + key + "'; it was not written by this program");
  return entry->second;
}

}  // namespace

std::string exact(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

double real(Metadata const& metadata, std::string const& key, std::string const& path) {
  std::string const& text = text_of(metadata, key, path);
  char* end = nullptr;
  double const value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value - value == 0))
    throw Error(ErrorCode::bad_file,
                path + ": its metadata has '" + text + "' as " + key + "; expected a number");
  return value;
}

long long integer(Metadata const& metadata, std::string const& key, std::string const& path, long long low,
                  long long high) {
  std::string const& text = text_of(metadata, key, path);
  long long value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    throw Error(ErrorCode::bad_file, path + ": its metadata has '" + text + "' as " + key +
                                         "; expected an integer from " + std::to_string(low) + " to " +
                                         std::to_string(high));
  return value;
}

}  // namespace cosmati::nets
