// Any bytes as a tuning file; what is read is written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cosmati/ops/error.h"
#include "cosmati/ops/tuning.h"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace cosmati;
  try {
    TuningTable const table = TuningTable::parse({reinterpret_cast<char const*>(data), size}, "fuzz.txt");
    std::string const text = table.text();
    if (TuningTable::parse(text, "again.txt").text() != text) std::abort();
  } catch (Error const&) {
  }
  return 0;
}
