// Any bytes as a PNG file with corrected chunk checksums, without which few inputs would pass.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/io/image/image.h"

namespace {

std::size_t big_endian(std::uint8_t const* at) {
  return std::size_t{at[0]} << 24 | std::size_t{at[1]} << 16 | std::size_t{at[2]} << 8 | at[3];
}

// Chunks: length, type, data, checksum of type and data.
void correct_checksums(std::vector<std::uint8_t>& file) {
  std::size_t at = 8;
  while (at + 12 <= file.size()) {
    std::size_t const length = big_endian(&file[at]);
    if (length > file.size() - at - 12) return;
    auto const checksum = crc32(0, &file[at + 4], static_cast<uInt>(length + 4));
    for (std::size_t i = 0; i < 4; ++i)
      file[at + 8 + length + i] = static_cast<std::uint8_t>(checksum >> (24 - 8 * i));
    at += length + 12;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace cosmati;
  std::vector<std::uint8_t> file(data, data + size);
  correct_checksums(file);
  try {
    io::to_gray(io::decode_png(std::as_bytes(std::span(file)), "fuzz.png"));
  } catch (Error const&) {
  }
  return 0;
}
