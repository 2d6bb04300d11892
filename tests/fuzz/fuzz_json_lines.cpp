// Any bytes as JSON Lines; what is read is written again.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cosmati/ops/error.h"
#include "src/io/json_lines.h"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace cosmati;
  try {
    io::parse_json_lines({reinterpret_cast<char const*>(data), size}, "fuzz.jsonl",
                         [](std::size_t, nlohmann::json&& value) { io::json_line(value); });
  } catch (Error const&) {
  }
  return 0;
}
