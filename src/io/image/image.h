// Images: 8-bit gray or color, read from and written to PNG and BMP, resized, and converted to gray.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace cosmati::io {

// Rows from top to bottom, pixels from left to right, interleaved channels: pixel (x, y) begins at (y * width
// + x) * channels.
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

// Returns a black image. Throws Error(bad_request) unless the extents are 1 to 16384 and there are 1 or 3
// channels.
Image make_image(int width, int height, int channels);

// The background of transparent pixels: white, as in viewers and print.
inline constexpr unsigned char white_page = 255;

// Reads a PNG or BMP file, detected by its first bytes. Transparent pixels are blended with a background of
// level `page` in each channel. 16-bit samples are rounded to 8. Throws Error(bad_file), also for more than
// 16384 columns or rows, which is checked before memory is allocated.
Image read_image(std::string const& path, unsigned char page = white_page);
// The same from memory; messages use `name` in place of the path.
Image decode_image(std::span<std::byte const> file, std::string const& name, unsigned char page = white_page);
// Decodes PNG of any color type, depth and interlacing, of at most COSMATI_MAX_IMAGE bytes (default: 256M;
// four per pixel), since a small file may contain a large image.
Image decode_png(std::span<std::byte const> file, std::string const& name, unsigned char page = white_page);
// Decodes uncompressed BMP of 1, 4, 8, 24 or 32 bits per pixel, with either order of rows.
Image decode_bmp(std::span<std::byte const> file, std::string const& name, unsigned char page = white_page);

// Crash-safe, like write_atomically.
void write_png(std::string const& path, Image const& image);
void write_bmp(std::string const& path, Image const& image);  // 24 bits per pixel, rows from bottom to top
std::string encode_png(Image const& image);
std::string encode_bmp(Image const& image);
// Returns the 54 bytes before the pixels. Rows follow from bottom to top, as blue, green, red, each padded to
// a multiple of 4 bytes.
std::string bmp_prologue(int width, int height);

// Luminance by ITU-R BT.601: 0.299 red + 0.587 green + 0.114 blue, rounded.
Image to_gray(Image const& image);
// Each new pixel is the mean of the area that it covers; suited for reducing images.
Image resize_area(Image const& image, int width, int height);
// Interpolates linearly between the centers of the four nearest pixels; suited for enlarging images.
Image resize_bilinear(Image const& image, int width, int height);

}  // namespace cosmati::io
