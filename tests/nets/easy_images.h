// A data set that is easy to learn, and files written by tests.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "nets/dataset.h"
#include "nets/lenet5/model.h"
#include "nets/random.h"

namespace cosmati::lenet5 {

// Images of ten classes that are easy to distinguish: a bright square at a position given by the label, and
// noise.
inline nets::Dataset easy_images(Index count, unsigned long long seed) {
  nets::Random random(seed, 0);
  nets::Dataset data;
  data.folder = "easy";
  data.images = Tensor(DataType::u8, {count, image_size, image_size});
  auto* const pixels = data.images.as<unsigned char>();
  for (Index i = 0; i < count; ++i) {
    int const label = static_cast<int>(random.bits() % 10);
    data.labels.push_back(label);
    for (Index y = 0; y < image_size; ++y)
      for (Index x = 0; x < image_size; ++x) {
        bool const inside = y / 5 == label / 5 + 1 && x / 5 == label % 5;
        double const value = random.uniform(0, 60) + (inside ? 180 : 0);
        pixels[(i * image_size + y) * image_size + x] = static_cast<unsigned char>(value);
      }
  }
  return data;
}

inline std::string bytes_of(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string temporary(std::string const& name) {
  return (std::filesystem::temp_directory_path() / ("cosmati_" + std::to_string(getpid()) + "_" + name))
      .string();
}

}  // namespace cosmati::lenet5
