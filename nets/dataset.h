// Labeled images in memory, and their assembly into batches.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/tensor.h"

namespace cosmati::nets {

// Labeled images: u8 (count, height, width), light on dark.
struct Dataset {
  Tensor images;
  std::vector<int> labels;
  std::string folder;

  Index count() const { return images.shape()[0]; }
  Index height() const { return images.shape()[1]; }
  Index width() const { return images.shape()[2]; }
  unsigned char const* image(Index i) const { return images.as<unsigned char>() + i * height() * width(); }
};

enum class Split { train, test };

// Reads {train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte, plain or .gz, as MNIST and Fashion-MNIST name
// them. Throws Error(bad_file) if they are missing, disagree in count, a label is not in [0, classes), or the
// images are not of size x size pixels.
Dataset read_dataset(std::string const& folder, Split split, int classes, Index size);

// Mean and standard deviation of all pixels, scaled to [0, 1].
struct PixelStatistics {
  double mean = 0;
  double deviation = 1;
};
PixelStatistics pixel_statistics(Dataset const& data, int threads = 1);

// The order in which epoch `epoch` visits `count` images: a permutation that depends on nothing else.
std::vector<Index> shuffled(Index count, unsigned long long seed, long long epoch);

// Writes images order[first], order[first + 1], ... of `data` into x (n, 1, h, w), f32, as (pixel/255 -
// mean)/deviation; positions past the end of `order` are filled with the mean, 0.
void gather(Dataset const& data, std::vector<Index> const& order, Index first,
            PixelStatistics const& statistics, TensorDescription const& x, float* target);

// The names of the classes: those of Fashion-MNIST if the folder's name contains it, otherwise the digits.
std::vector<std::string> class_names(std::string const& folder);

}  // namespace cosmati::nets
