// Pictures: 8-bit gray or color, read from and written to PNG and BMP, and made smaller, larger or gray.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace cosmati::io {

// Rows from the top down, pixels from the left, channels together: pixel (x, y) begins at (y * width + x) *
// channels.
struct Image {
  int width = 0;
  int height = 0;
  int channels = 1;  // 1: gray; 3: red, green, blue
  std::vector<unsigned char> pixels;

  std::size_t offset(int x, int y) const {
    return (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) *
           static_cast<std::size_t>(channels);
  }
};

// All black. Throws Error(bad_request) unless the extents are 1 to 16384 and there are 1 or 3 channels.
Image make_image(int width, int height, int channels);

// The page that transparent pixels show: white, as viewers and printers have it.
inline constexpr unsigned char white_page = 255;

// A PNG or BMP file, told by its first bytes. Transparent pixels are laid over a page of the level `page` in
// each channel. 16-bit samples are rounded to 8. Throws Error(bad_file), also for more than 16384 columns or
// rows, which is checked before memory is taken.
Image read_image(std::string const& path, unsigned char page = white_page);
// The same from memory; `name` stands for the path in messages.
Image decode_image(std::span<std::byte const> file, std::string const& name, unsigned char page = white_page);
// PNG of any color type, depth and interlacing; of at most COSMATI_MAX_IMAGE bytes (256M unless it is set;
// four a pixel), as a small file may hold a large picture.
Image decode_png(std::span<std::byte const> file, std::string const& name, unsigned char page = white_page);
// BMP of 1, 4, 8, 24 or 32 bits a pixel, not compressed, with either order of rows.
Image decode_bmp(std::span<std::byte const> file, std::string const& name, unsigned char page = white_page);

// Crash-safe, as write_atomically.
void write_png(std::string const& path, Image const& image);
void write_bmp(std::string const& path, Image const& image);  // 24 bits a pixel, rows from the bottom up
std::string encode_png(Image const& image);
std::string encode_bmp(Image const& image);
// What stands before the pixels: 54 bytes. Rows follow from the bottom up, blue, green, red, each filled up
// to a multiple of 4 bytes.
std::string bmp_prologue(int width, int height);

// Luminance by ITU-R BT.601: 0.299 red + 0.587 green + 0.114 blue, rounded.
Image to_grey(Image const& image);
// Each new pixel is the mean of the area that it covers; right for making pictures smaller.
Image resize_area(Image const& image, int width, int height);
// Linear between the centres of the four nearest pixels; right for making pictures larger.
Image resize_bilinear(Image const& image, int width, int height);

}  // namespace cosmati::io
