// The sizes of a generator and of the discriminator that it is trained against.
#pragma once
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::dcgan {

inline constexpr Index latent_size = 100;  // z
inline constexpr Index first_size = 4;     // rows and columns after the projection
inline constexpr int layer_count = 4;      // transposed convolutions; each doubles rows and columns
inline constexpr Index filter_size = 5;
inline constexpr Index image_channels = 3;
inline constexpr Index image_size = first_size << layer_count;  // 64
inline constexpr Index image_elements = image_size * image_size * image_channels;

// Images of channels.back() channels; each transposed convolution of the generator doubles rows and columns,
// and each convolution of the discriminator halves them. The default is the report's network. The command
// line only changes the hidden channels (architecture_of_width); tests also use fewer layers.
struct Architecture {
  Index latent = latent_size;
  std::vector<Index> channels = {512, 256, 128, 64, image_channels};

  int layers() const { return static_cast<int>(channels.size()) - 1; }
  Index channel(int i) const { return channels[static_cast<std::size_t>(i)]; }
  Index size(int i) const { return first_size << i; }  // rows and columns of images of channel(i)
  Index image_size() const { return size(layers()); }
  Index image_elements() const { return image_size() * image_size() * channels.back(); }
  Index features() const { return first_size * first_size * channels.front(); }
  friend bool operator==(Architecture const&, Architecture const&) = default;
};

// The network of the report, its hidden channels scaled: `width` before the last layer, 8 * width after the
// projection. 64 is the report's.
inline Architecture architecture_of_width(Index width) {
  return {latent_size, {8 * width, 4 * width, 2 * width, width, image_channels}};
}

}  // namespace cosmati::dcgan
