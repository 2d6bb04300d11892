// Parses and prints sizes with units.
#include "src/io/size_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "cosmati/ops/error.h"

namespace cosmati::io {

long long size_from_environment(char const* name, long long otherwise) {
  char const* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return otherwise;
  constexpr std::string_view units = "KMGT";
  std::string_view const text = value;
  long long number = -1;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view const unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  std::size_t const power = unit.empty() ? 0 : units.find(unit[0]) + 1;  // also 0 if the unit is unknown
  if (error != std::errc() || number < 0 || unit.size() > 1 || (!unit.empty() && power == 0) ||
      number > (1LL << 62) >> (10 * power))
    throw Error(
        ErrorCode::bad_request,
        fmt::format("{} is \"{}\"; expected bytes, or a number with K, M, G or T such as 512M", name, text));
  return number << (10 * power);
}

}  // namespace cosmati::io
