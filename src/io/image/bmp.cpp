// Reads and writes BMP files: a file header of 14 bytes, an information header of 40 bytes or more, a
// palette, and rows padded to 4 bytes.
#include <fmt/format.h>

#include <array>
#include <string>

#include "src/io/bad_file.h"
#include "src/io/image/image.h"
#include "src/io/image/image_checks.h"

namespace cosmati::io {
namespace {

constexpr std::size_t file_header_bytes = 14;
constexpr std::size_t information_bytes = 40;

std::size_t padded_row_bytes(std::size_t width, std::size_t bits) { return (width * bits + 31) / 32 * 4; }

struct Color {
  unsigned char red = 0, green = 0, blue = 0;
};

class Decoder {
 public:
  Decoder(std::span<std::byte const> file, std::string const& name, unsigned char page)
      : file_(file), name_(name), page_(page) {}

  Image decode() {
    read_header();
    read_masks();
    bool const has_palette = bits_ <= 8;
    if (has_palette) read_palette();
    Image image =
        make_image(static_cast<int>(width_), static_cast<int>(height_), has_palette && gray_ ? 1 : 3);
    for (int y = 0; y < image.height; ++y) {
      int const row = top_down_ ? y : image.height - 1 - y;
      std::size_t const row_at = data_at_ + static_cast<std::size_t>(row) * row_bytes();
      unsigned char* const to = image.pixels.data() + image.offset(0, y);
      has_palette ? decode_indices(row_at, image, to) : decode_colors(row_at, image, to);
    }
    return image;
  }

 private:
  unsigned u8_at(std::size_t at) const { return static_cast<unsigned>(file_[at]); }
  unsigned u16_at(std::size_t at) const { return u8_at(at) | u8_at(at + 1) << 8; }
  unsigned u32_at(std::size_t at) const { return u16_at(at) | u16_at(at + 2) << 16; }
  long long s32_at(std::size_t at) const { return static_cast<int>(u32_at(at)); }
  std::size_t row_bytes() const { return padded_row_bytes(static_cast<std::size_t>(width_), bits_); }

  void read_header() {
    if (file_.size() < file_header_bytes + information_bytes)
      bad_file(name_, fmt::format("ends after {} bytes, within its BMP header", file_.size()));
    if (u8_at(0) != 'B' || u8_at(1) != 'M') bad_file(name_, "is not a BMP file: it does not begin with BM");
    data_at_ = u32_at(10);
    header_bytes_ = u32_at(14);
    width_ = s32_at(18);
    height_ = s32_at(22);
    bits_ = u16_at(28);
    compression_ = u32_at(30);
    if (header_bytes_ < information_bytes || header_bytes_ > file_.size() - file_header_bytes)
      bad_file(
          name_,
          fmt::format("has a BMP information header of {} bytes; valid values: 40 to the rest of the file",
                      header_bytes_));
    top_down_ = height_ < 0;
    if (top_down_) height_ = -height_;
    check_image_extents(width_, height_, name_);
    if (u16_at(26) != 1) bad_file(name_, fmt::format("has {} color planes; expected 1", u16_at(26)));
    if (bits_ != 1 && bits_ != 4 && bits_ != 8 && bits_ != 24 && bits_ != 32)
      bad_file(name_, fmt::format("has {} bits per pixel; valid values: 1, 4, 8, 24 and 32", bits_));
    std::size_t const data_bytes = row_bytes() * static_cast<std::size_t>(height_);
    if (data_at_ < file_header_bytes + header_bytes_ || data_at_ > file_.size() ||
        data_bytes > file_.size() - data_at_)
      bad_file(name_,
               fmt::format(
                   "{} x {} pixels of {} bits take {} bytes starting at byte {}, but the file has {} bytes",
                   width_, height_, bits_, data_bytes, data_at_, file_.size()));
  }

  // Accepts 32 bits with masks (compression 3) if the masks equal the default layout of 32 bits; the fourth
  // byte is alpha if there is a mask for it.
  void read_masks() {
    constexpr unsigned with_masks = 3;
    if (compression_ == 0) return;
    std::size_t const masks_at = file_header_bytes + information_bytes;
    if (compression_ != with_masks || bits_ != 32 || masks_at + 12 > data_at_)
      bad_file(name_, fmt::format("has compression {} with {} bits per pixel; valid values: 0 (none)",
                                  compression_, bits_));
    if (u32_at(masks_at) != 0xff0000 || u32_at(masks_at + 4) != 0xff00 || u32_at(masks_at + 8) != 0xff)
      bad_file(name_,
               fmt::format("has the color masks {:#x}, {:#x} and {:#x}; valid values: 0xff0000, 0xff00 and "
                           "0xff",
                           u32_at(masks_at), u32_at(masks_at + 4), u32_at(masks_at + 8)));
    constexpr std::size_t header_with_alpha_mask = 56;
    has_alpha_ = header_bytes_ >= header_with_alpha_mask && u32_at(masks_at + 12) == 0xff000000;
  }

  void read_palette() {
    std::size_t const at = file_header_bytes + header_bytes_;
    std::size_t const maximum = std::size_t{1} << bits_;
    std::size_t const used = u32_at(46);
    colors_ = used == 0 ? maximum : used;
    if (colors_ > maximum || colors_ * 4 > data_at_ - at)
      bad_file(name_,
               fmt::format("has a palette of {} colors; valid values: up to {} that fit before the pixels",
                           colors_, maximum));
    for (std::size_t i = 0; i < colors_; ++i) {
      palette_[i] = color_at(at + 4 * i);
      gray_ = gray_ && palette_[i].red == palette_[i].green && palette_[i].red == palette_[i].blue;
    }
  }

  Color color_at(std::size_t at) const {
    return {static_cast<unsigned char>(file_[at + 2]), static_cast<unsigned char>(file_[at + 1]),
            static_cast<unsigned char>(file_[at])};
  }

  void decode_indices(std::size_t row_at, Image const& image, unsigned char* to) const {
    for (unsigned x = 0; x < static_cast<unsigned>(image.width); ++x) {
      unsigned const bit = x * bits_;
      unsigned const index = u8_at(row_at + bit / 8) >> (8 - bits_ - bit % 8) & ((1u << bits_) - 1);
      if (index >= colors_)
        bad_file(name_,
                 fmt::format("a pixel in column {} has color {} of a palette of {}", x, index, colors_));
      put(palette_[index], image, to);
    }
  }

  void decode_colors(std::size_t row_at, Image const& image, unsigned char* to) const {
    for (int x = 0; x < image.width; ++x) {
      Color color = color_at(row_at);
      if (has_alpha_) {
        unsigned const alpha = u8_at(row_at + 3);
        color = {over_page(color.red, alpha, page_), over_page(color.green, alpha, page_),
                 over_page(color.blue, alpha, page_)};
      }
      put(color, image, to);
      row_at += bits_ / 8;
    }
  }

  static void put(Color color, Image const& image, unsigned char*& to) {
    *to++ = color.red;
    if (image.channels == 1) return;
    *to++ = color.green;
    *to++ = color.blue;
  }

  std::span<std::byte const> file_;
  std::string const& name_;
  unsigned char page_;
  std::size_t data_at_ = 0;
  std::size_t header_bytes_ = 0;
  long long width_ = 0;
  long long height_ = 0;
  bool top_down_ = false;
  unsigned bits_ = 0;
  unsigned compression_ = 0;
  bool has_alpha_ = false;
  std::array<Color, 256> palette_;
  std::size_t colors_ = 0;
  bool gray_ = true;
};

void append_u16(std::string& text, unsigned value) {
  text += static_cast<char>(value & 0xff);
  text += static_cast<char>(value >> 8 & 0xff);
}

void append_u32(std::string& text, std::size_t value) {
  append_u16(text, static_cast<unsigned>(value));
  append_u16(text, static_cast<unsigned>(value >> 16));
}

}  // namespace

Image decode_bmp(std::span<std::byte const> file, std::string const& name, unsigned char page) {
  return Decoder(file, name, page).decode();
}

std::string bmp_prologue(int width, int height) {
  std::size_t const row_bytes = padded_row_bytes(static_cast<std::size_t>(width), 24);
  std::size_t const data_bytes = row_bytes * static_cast<std::size_t>(height);
  std::size_t const data_at = file_header_bytes + information_bytes;
  std::string header = "BM";
  append_u32(header, data_at + data_bytes);
  append_u32(header, 0);  // two reserved fields of 16 bits
  append_u32(header, data_at);
  append_u32(header, information_bytes);
  append_u32(header, static_cast<std::size_t>(width));
  append_u32(header, static_cast<std::size_t>(height));
  append_u16(header, 1);   // planes
  append_u16(header, 24);  // bits per pixel
  append_u32(header, 0);   // no compression
  append_u32(header, data_bytes);
  for (int i = 0; i < 4; ++i) append_u32(header, 0);  // resolution in both directions, palette sizes
  return header;
}

std::string encode_bmp(Image const& image) {
  check_image(image);
  std::size_t const row_bytes = padded_row_bytes(static_cast<std::size_t>(image.width), 24);
  std::string file = bmp_prologue(image.width, image.height);
  file.reserve(file.size() + row_bytes * static_cast<std::size_t>(image.height));
  for (int y = image.height - 1; y >= 0; --y) {
    for (int x = 0; x < image.width; ++x) {
      unsigned char const* const pixel = image.pixels.data() + image.offset(x, y);
      for (int c = 2; c >= 0; --c) file += static_cast<char>(pixel[image.channels == 1 ? 0 : c]);
    }
    file.append(row_bytes - static_cast<std::size_t>(image.width) * 3, '\0');
  }
  return file;
}

}  // namespace cosmati::io
