// Any bytes as a BMP file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "cosmati/ops/error.h"
#include "src/io/image/image.h"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace cosmati;
  std::span<std::byte const> const file(reinterpret_cast<std::byte const*>(data), size);
  try {
    io::to_gray(io::decode_bmp(file, "fuzz.bmp"));
  } catch (Error const&) {
  }
  return 0;
}
