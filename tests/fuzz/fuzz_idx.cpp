// Any bytes as an IDX file, plain or compressed.
#include <cstddef>
#include <cstdint>
#include <span>

#include "cosmati/ops/error.h"
#include "src/io/idx.h"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace cosmati;
  std::span<std::byte const> const file(reinterpret_cast<std::byte const*>(data), size);
  try {
    io::parse_idx(file, "fuzz.idx");
  } catch (Error const&) {
  }
  return 0;
}
