// Image functions that do not depend on the file format.
#include "src/io/image/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/io/bad_file.h"
#include "src/io/file.h"
#include "src/io/image/image_checks.h"

namespace cosmati::io {
namespace {

// One term of a weighted average along one axis.
struct Tap {
  int index;
  double weight;
};

// For each output pixel along an axis, the input pixels that it averages, and their weights.
using Taps = std::vector<std::vector<Tap>>;

Taps area_taps(int from, int to) {
  Taps taps(static_cast<std::size_t>(to));
  double const step = static_cast<double>(from) / to;
  for (int i = 0; i < to; ++i) {
    double const begin = i * step;
    double const end = (i + 1) * step;
    for (int j = static_cast<int>(begin); j < from && j < end; ++j) {
      double const covered = std::min(end, j + 1.0) - std::max(begin, static_cast<double>(j));
      if (covered > 0) taps[static_cast<std::size_t>(i)].push_back({j, covered / step});
    }
  }
  return taps;
}

Taps bilinear_taps(int from, int to) {
  Taps taps(static_cast<std::size_t>(to));
  double const step = static_cast<double>(from) / to;
  for (int i = 0; i < to; ++i) {
    double const centre = std::clamp((i + 0.5) * step - 0.5, 0.0, from - 1.0);
    int const low = static_cast<int>(centre);
    double const rest = centre - low;
    taps[static_cast<std::size_t>(i)] = {{low, 1 - rest}, {std::min(low + 1, from - 1), rest}};
  }
  return taps;
}

Image resize(Image const& image, int width, int height, Taps const& columns, Taps const& rows) {
  Image result = make_image(width, height, image.channels);
  auto const channels = static_cast<std::size_t>(image.channels);
  std::vector<double> line(static_cast<std::size_t>(image.width) * channels);
  for (int y = 0; y < height; ++y) {
    std::fill(line.begin(), line.end(), 0.0);
    for (Tap const& row : rows[static_cast<std::size_t>(y)]) {
      unsigned char const* const from = image.pixels.data() + image.offset(0, row.index);
      for (std::size_t i = 0; i < line.size(); ++i) line[i] += row.weight * from[i];
    }
    unsigned char* to = result.pixels.data() + result.offset(0, y);
    for (int x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (Tap const& column : columns[static_cast<std::size_t>(x)])
          sum += column.weight * line[static_cast<std::size_t>(column.index) * channels + c];
        *to++ = static_cast<unsigned char>(std::clamp(std::lround(sum), 0L, 255L));
      }
  }
  return result;
}

void check_request(int width, int height, int channels) {
  if (width < 1 || height < 1 || width > largest_image_extent || height > largest_image_extent)
    throw Error(ErrorCode::bad_request,
                fmt::format("an image of {} x {} pixels is not supported; valid values: 1 to {} in each "
                            "direction",
                            width, height, largest_image_extent));
  if (channels != 1 && channels != 3)
    throw Error(ErrorCode::bad_request, fmt::format("an image has 1 or 3 channels, not {}", channels));
}

}  // namespace

Image make_image(int width, int height, int channels) {
  check_request(width, height, channels);
  return {width, height, channels,
          std::vector<unsigned char>(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) *
                                     static_cast<std::size_t>(channels))};
}

void check_image(Image const& image) {
  check_request(image.width, image.height, image.channels);
  if (image.pixels.size() != image.offset(0, image.height))
    throw Error(ErrorCode::bad_request,
                fmt::format("an image of {} x {} pixels with {} channels cannot have {} samples", image.width,
                            image.height, image.channels, image.pixels.size()));
}

void check_image_extents(long long width, long long height, std::string const& name) {
  if (width < 1 || height < 1 || width > largest_image_extent || height > largest_image_extent)
    bad_file(name, fmt::format("claims {} x {} pixels; valid values: 1 to {} in each direction", width,
                               height, largest_image_extent));
}

Image decode_image(std::span<std::byte const> file, std::string const& name, unsigned char page) {
  std::string_view const text(reinterpret_cast<char const*>(file.data()), file.size());
  if (text.substr(0, 2) == "BM") return decode_bmp(file, name, page);
  if (text.substr(0, 4) == "\x89PNG") return decode_png(file, name, page);
  bad_file(name, "is neither a PNG nor a BMP file");
}

Image read_image(std::string const& path, unsigned char page) {
  return decode_image(MappedFile(path).bytes(), path, page);
}

void write_png(std::string const& path, Image const& image) { write_atomically(path, encode_png(image)); }
void write_bmp(std::string const& path, Image const& image) { write_atomically(path, encode_bmp(image)); }

Image to_gray(Image const& image) {
  check_image(image);
  if (image.channels == 1) return image;
  Image gray = make_image(image.width, image.height, 1);
  unsigned char const* from = image.pixels.data();
  for (unsigned char& value : gray.pixels) {
    value = static_cast<unsigned char>((299 * from[0] + 587 * from[1] + 114 * from[2] + 500) / 1000);
    from += 3;
  }
  return gray;
}

Image resize_area(Image const& image, int width, int height) {
  check_image(image);
  check_request(width, height, image.channels);
  return resize(image, width, height, area_taps(image.width, width), area_taps(image.height, height));
}

Image resize_bilinear(Image const& image, int width, int height) {
  check_image(image);
  check_request(width, height, image.channels);
  return resize(image, width, height, bilinear_taps(image.width, width), bilinear_taps(image.height, height));
}

}  // namespace cosmati::io
