// Which numbers make a generator and the discriminator that it is trained against.
#pragma once
#include <vector>

#include "nets/dcgan/weights.h"

namespace cosmati::dcgan {

// Images of channels.back() channels; each transposed convolution of the generator, and in the other
// direction each convolution of the discriminator, doubles (halves) rows and columns. The shipped networks
// are the default; smaller ones are for tests.
struct Architecture {
  Index latent = latent_size;
  std::vector<Index> channels = {dcgan::channels[0], dcgan::channels[1], dcgan::channels[2],
                                 dcgan::channels[3], dcgan::channels[4]};

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
