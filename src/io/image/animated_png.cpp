// Encodes each frame as a separate PNG with libpng; its compressed rows (IDAT) become those of an animation
// frame (fdAT).
#include "src/io/image/animated_png.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <string_view>

#include "cosmati/ops/error.h"
#include "src/io/file.h"

namespace cosmati::io {
namespace {

constexpr std::size_t signature_bytes = 8, length_bytes = 4, name_bytes = 4, sum_bytes = 4;

std::string big_endian(std::uint32_t value, int bytes = 4) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 255);
  return text;
}

std::uint32_t big_endian_at(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

// A PNG chunk: length, name, data, and the CRC of name and data.
std::string chunk(std::string_view name, std::string_view data) {
  std::string const checked = std::string(name) + std::string(data);
  auto const sum =
      crc32(0, reinterpret_cast<Bytef const*>(checked.data()), static_cast<uInt>(checked.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + checked +
         big_endian(static_cast<std::uint32_t>(sum));
}

// The concatenated data of all chunks with that name.
std::string data_of(std::string_view png, std::string_view name) {
  std::string data;
  for (std::size_t at = signature_bytes; at + length_bytes + name_bytes + sum_bytes <= png.size();) {
    std::size_t const length = big_endian_at(png, at), begin = at + length_bytes + name_bytes;
    if (png.substr(at + length_bytes, name_bytes) == name) data += png.substr(begin, length);
    at = begin + length + sum_bytes;
  }
  return data;
}

}  // namespace

void write_animated_png(std::string const& path, Index count, int frames_per_second,
                        std::function<Image(Index)> const& frame) {
  if (count < 1 || count > 0x7fffffff || frames_per_second < 1 || frames_per_second > 1000)
    throw Error(
        ErrorCode::bad_request,
        fmt::format(
            "{} frames at {} per second; an animation has 1 to 2147483647 frames at 1 to 1000 per second",
            count, frames_per_second));
  write_atomically(path, [&](FileWriter& file) {
    std::uint32_t sequence = 0;  // shared sequence number of frame headers and of the rows of all frames but
                                 // the first
    std::string head;
    for (Index i = 0; i < count; ++i) {
      Image const image = frame(i);
      std::string const png = encode_png(image), header = data_of(png, "IHDR"), rows = data_of(png, "IDAT");
      if (i == 0) {
        head = header;
        file.write(std::string_view(png).substr(0, signature_bytes));
        file.write(chunk("IHDR", header));
        constexpr std::uint32_t for_ever = 0;
        file.write(chunk("acTL", big_endian(static_cast<std::uint32_t>(count)) + big_endian(for_ever)));
      } else if (header != head) {
        throw Error(
            ErrorCode::bad_request,
            fmt::format(
                "frame {} of the animation {} is {} x {} pixels; all frames must have the size and the "
                "channels of frame 0",
                i, path, image.width, image.height));
      }
      // The frame's rectangle (the full image), its duration, and that the next frame replaces it.
      file.write(chunk("fcTL", big_endian(sequence++) + big_endian(static_cast<std::uint32_t>(image.width)) +
                                   big_endian(static_cast<std::uint32_t>(image.height)) + big_endian(0) +
                                   big_endian(0) + big_endian(1, 2) +
                                   big_endian(static_cast<std::uint32_t>(frames_per_second), 2) +
                                   big_endian(0, 1) + big_endian(0, 1)));
      file.write(i == 0 ? chunk("IDAT", rows) : chunk("fdAT", big_endian(sequence++) + rows));
    }
    file.write(chunk("IEND", ""));
  });
}

}  // namespace cosmati::io
