// Reads MNIST's four files, shuffles, and converts bytes to a batch.
#include "nets/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <utility>

#include "nets/random.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/io/idx.h"

namespace cosmati::nets {
namespace {

std::string find_file(std::string const& folder, std::string const& name) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw Error(ErrorCode::bad_file, folder + ": is not a folder; expected one with MNIST's IDX files");
  for (char const* ending : {"", ".gz"}) {
    std::string path = (std::filesystem::path(folder) / (name + ending)).string();
    if (std::filesystem::exists(path, ignored)) return path;
  }
  throw Error(ErrorCode::bad_file, folder + ": has neither " + name + " nor " + name + ".gz");
}

}  // namespace

Dataset read_dataset(std::string const& folder, Split split, int classes, Index size) {
  std::string const prefix = split == Split::train ? "train" : "t10k";
  std::string const image_path = find_file(folder, prefix + "-images-idx3-ubyte");
  std::string const label_path = find_file(folder, prefix + "-labels-idx1-ubyte");
  Dataset data;
  data.folder = folder;
  data.images = io::read_idx(image_path);
  if (data.images.type() != DataType::u8 || data.images.shape().rank != 3 || data.images.size() == 0)
    throw Error(ErrorCode::bad_file, image_path + ": holds " + to_string(data.images.description()) +
                                         "; expected u8 images (count, height, width)");
  if (data.height() != size || data.width() != size)
    throw Error(ErrorCode::bad_file, image_path + ": the images are " + std::to_string(data.height()) + "x" +
                                         std::to_string(data.width()) + "; expected " + std::to_string(size) +
                                         "x" + std::to_string(size));
  Tensor const labels = io::read_idx(label_path);
  if (labels.type() != DataType::u8 || labels.shape().rank != 1)
    throw Error(ErrorCode::bad_file,
                label_path + ": holds " + to_string(labels.description()) + "; expected u8 labels (count)");
  if (labels.size() != data.count())
    throw Error(ErrorCode::bad_file, label_path + ": holds " + std::to_string(labels.size()) +
                                         " labels, but " + image_path + " holds " +
                                         std::to_string(data.count()) + " images");
  data.labels.assign(labels.as<unsigned char>(), labels.as<unsigned char>() + labels.size());
  auto const wrong =
      std::find_if(data.labels.begin(), data.labels.end(), [=](int l) { return l >= classes; });
  if (wrong != data.labels.end())
    throw Error(ErrorCode::bad_file, label_path + ": label " + std::to_string(wrong - data.labels.begin()) +
                                         " is " + std::to_string(*wrong) + "; expected 0 to " +
                                         std::to_string(classes - 1));
  return data;
}

PixelStatistics pixel_statistics(Dataset const& data, int threads) {
  unsigned char const* const pixels = data.image(0);
  Index const all = data.images.size();
  struct Sums {
    std::uint64_t sum = 0, squares = 0;
  };
  std::vector<Sums> of_part(static_cast<std::size_t>(std::max(threads, 1)));
  cpu::parallel_parts(static_cast<int>(of_part.size()), [&](int part, int parts) {
    // Pixels whose sum of squares fits in 32 bits, so that the loop vectorizes.
    constexpr Index run = 1 << 14;
    auto const [begin, end] = cpu::share(all, part, parts, run);
    Sums sums;
    for (Index first = begin; first < end; first += run) {
      std::uint32_t run_sum = 0, run_squares = 0;
      for (Index i = first; i < std::min(first + run, end); ++i) {
        std::uint32_t const pixel = pixels[i];
        run_sum += pixel;
        run_squares += pixel * pixel;
      }
      sums.sum += run_sum;
      sums.squares += run_squares;
    }
    of_part[static_cast<std::size_t>(part)] = sums;
  });
  std::uint64_t sum = 0, squares = 0;
  for (Sums const& sums : of_part) {
    sum += sums.sum;
    squares += sums.squares;
  }
  double const count = static_cast<double>(all), mean = static_cast<double>(sum) / (255 * count);
  double const variance = static_cast<double>(squares) / (255.0 * 255 * count) - mean * mean;
  return {mean, variance > 0 ? std::sqrt(variance) : 1};
}

std::vector<Index> shuffled(Index count, unsigned long long seed, long long epoch) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  Random random(seed, static_cast<unsigned long long>(epoch));
  for (std::size_t i = order.size(); i > 1;
       --i)  // Fisher-Yates shuffle; the bias of the modulus is below 2^-47
    std::swap(order[i - 1], order[random.bits() % i]);
  return order;
}

void gather(Dataset const& data, std::vector<Index> const& order, Index first,
            PixelStatistics const& statistics, TensorDescription const& x, float* target) {
  float value_of[256];
  for (int value = 0; value < 256; ++value)
    value_of[value] = static_cast<float>((value / 255.0 - statistics.mean) / statistics.deviation);
  Index const batch = x.extent(0), pixels = data.height() * data.width();
  // In both layouts in use, the stride between adjacent pixels is constant: 1, or the batch size.
  Index const image_step = x.layout.stride[0], pixel_step = x.layout.stride[3];
  constexpr Index tile = 16;  // images at a time, so that strided writes fill complete cache lines
  unsigned char const* source[tile];
  for (Index n0 = 0; n0 < batch; n0 += tile) {
    Index const n = std::min(tile, batch - n0);
    Index const present = std::clamp(static_cast<Index>(order.size()) - first - n0, Index{0}, n);
    for (Index i = 0; i < present; ++i)
      source[i] = data.image(order[static_cast<std::size_t>(first + n0 + i)]);
    float* const to = target + n0 * image_step;
    for (Index p = 0; p < pixels; ++p) {
      for (Index i = 0; i < present; ++i) to[i * image_step + p * pixel_step] = value_of[source[i][p]];
      for (Index i = present; i < n; ++i) to[i * image_step + p * pixel_step] = 0;
    }
  }
}

std::vector<std::string> class_names(std::string const& folder) {
  if (folder.find("fashion") != std::string::npos)
    return {"T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Boot"};
  return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
}

}  // namespace cosmati::nets
