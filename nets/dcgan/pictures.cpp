// Reads files as square images of one size, and tints gray ones.
#include "nets/dcgan/pictures.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>

#include "src/backend/cpu/runtime/parallel.h"
#include "src/io/idx.h"
#include "src/io/image/image.h"

namespace cosmati::dcgan {
namespace {

namespace files = std::filesystem;

// The central square of `image`, resized to size x size.
io::Image square(io::Image const& image, int size) {
  int const side = std::min(image.width, image.height);
  io::Image middle = io::make_image(side, side, image.channels);
  for (int y = 0; y < side; ++y)
    std::copy_n(&image.pixels[image.offset((image.width - side) / 2, (image.height - side) / 2 + y)],
                side * image.channels, &middle.pixels[middle.offset(0, y)]);
  if (side == size) return middle;
  return side > size ? io::resize_area(middle, size, size) : io::resize_bilinear(middle, size, size);
}

// Fills `pictures` with make(i), distributed over threads; rethrows the first exception.
void fill(Pictures& pictures, int threads, std::function<io::Image(Index)> const& make) {
  Index const elements = pictures.size * pictures.size * pictures.channels;
  pictures.pixels.resize(static_cast<std::size_t>(pictures.count * elements));
  std::exception_ptr failure;
  std::mutex lock;
  std::atomic<bool> failed{false};
  cpu::parallel_parts(std::max(threads, 1), [&](int part, int parts) {
    auto const share = cpu::share(pictures.count, part, parts);
    for (Index i = share.first; i < share.last && !failed; ++i) {
      try {
        io::Image const image = make(i);
        std::copy(image.pixels.begin(), image.pixels.end(),
                  pictures.pixels.begin() + static_cast<std::ptrdiff_t>(i * elements));
      } catch (...) {
        std::lock_guard const guard(lock);
        if (!failed) failure = std::current_exception();
        failed = true;
      }
    }
  });
  if (failure) std::rethrow_exception(failure);
}

Pictures from_idx(std::string const& path, Index size, int threads) {
  Tensor const images = io::read_idx(path);
  if (images.type() != DataType::u8 || images.shape().rank != 3 || images.size() == 0)
    throw Error(ErrorCode::bad_file, path + ": holds " + to_string(images.description()) +
                                         "; expected u8 images (count, height, width)");
  int const height = static_cast<int>(images.shape()[1]), width = static_cast<int>(images.shape()[2]);
  Pictures pictures{images.shape()[0], size, 1, path, {}};
  fill(pictures, threads, [&](Index i) {
    io::Image image = io::make_image(width, height, 1);
    std::copy_n(images.as<unsigned char>() + i * height * width, image.pixels.size(), image.pixels.begin());
    return square(image, static_cast<int>(size));
  });
  return pictures;
}

Pictures from_pngs(std::string const& folder, std::vector<std::string> const& paths, Index size,
                   int threads) {
  Pictures pictures{static_cast<Index>(paths.size()), size, 3, folder, {}};
  fill(pictures, threads, [&](Index i) {
    io::Image image = square(io::read_image(paths[static_cast<std::size_t>(i)]), static_cast<int>(size));
    if (image.channels == 3) return image;
    io::Image color = io::make_image(image.width, image.height, 3);
    for (std::size_t p = 0; p < image.pixels.size(); ++p)
      std::fill_n(color.pixels.begin() + static_cast<std::ptrdiff_t>(3 * p), 3, image.pixels[p]);
    return color;
  });
  return pictures;
}

}  // namespace

Tint tint_of(Index picture) {
  constexpr double golden_ratio = 0.6180339887498949, saturation = 0.6;
  double const turns = static_cast<double>(picture) * golden_ratio;
  double const hue = turns - std::floor(turns);
  auto const channel =
      [=](double shift) {  // 1 within a sixth of the color circle from the channel's hue, 0 beyond a third
        double distance = std::abs(hue - shift);
        distance = std::min(distance, 1 - distance);
        return 1 - saturation + saturation * std::clamp(2 - 6 * distance, 0.0, 1.0);
      };
  return {channel(0), channel(1.0 / 3), channel(2.0 / 3)};
}

void Pictures::draw(Index i, unsigned char* target) const {
  Index const area = size * size;
  unsigned char const* const from = pixels.data() + i * area * channels;
  if (channels == 3) {
    std::copy_n(from, 3 * area, target);
    return;
  }
  Tint const tint = tint_of(i);
  double const shares[] = {tint.red, tint.green, tint.blue};
  unsigned char colors[256][4] = {};  // of each level of gray
  for (int c = 0; c < 3; ++c) {
    int const share = static_cast<int>(std::lround(shares[c] * 256));
    for (int level = 0; level < 256; ++level)
      colors[level][c] = static_cast<unsigned char>(level * share >> 8);
  }
  // Four bytes at once: the next pixel overwrites the fourth.
  for (Index p = 0; p + 1 < area; ++p) std::memcpy(target + 3 * p, colors[from[p]], 4);
  std::memcpy(target + 3 * (area - 1), colors[from[area - 1]], 3);
}

Pictures read_pictures(std::string const& path, Index size, int threads) {
  std::error_code ignored;
  if (files::is_regular_file(path, ignored)) return from_idx(path, size, threads);
  if (!files::is_directory(path, ignored))
    throw Error(ErrorCode::bad_file, path +
                                         ": is neither a folder of PNG files or MNIST's IDX files nor an "
                                         "IDX file of images");
  for (char const* name : {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"}) {
    auto const candidate = files::path(path) / name;
    if (files::exists(candidate, ignored)) return from_idx(candidate.string(), size, threads);
  }
  std::vector<std::string> paths;
  for (auto const& entry : files::directory_iterator(path)) {
    auto const ending = entry.path().extension();
    if (ending == ".png" || ending == ".PNG") paths.push_back(entry.path().string());
  }
  if (paths.empty())
    throw Error(ErrorCode::bad_file,
                path + ": has neither train-images-idx3-ubyte (plain or .gz) nor any .png file");
  std::sort(paths.begin(), paths.end());
  return from_pngs(path, paths, size, threads);
}

}  // namespace cosmati::dcgan
