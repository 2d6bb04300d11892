// The layers of a fused network as plain data, and the layout of their arrays in a block's shared memory.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

enum class FusedFunction : unsigned char { identity, relu, sigmoid, scaled_tanh };

// The next even length whose half is odd: lanes that load pairs of different rows access different banks.
COSMATI_CONSTEXPR int odd_pairs(int row) {
  row += row % 2;
  return row % 4 == 0 ? row + 2 : row;
}

// Adjacent lanes load pairs of floats, each of its own 2 x 2 tile. They access different banks if a row of
// tiles has an even number of slots (possibly one more than tiles) and two rows of the array are as many
// pairs apart, modulo 16.
COSMATI_CONSTEXPR int fused_slots(int tiles, int row) {
  int const excess = (row - tiles) % 16;
  return excess <= 2 ? tiles + excess : tiles + tiles % 2;
}
COSMATI_CONSTEXPR int fused_row(int row, int slots) {
  row += row % 2;
  if (slots % 16 == 0) return odd_pairs(row);
  while ((row - slots) % 16 != 0) row += 2;
  return row;
}

// A convolution with stride 1 or, if taps is 0, a fully connected layer; then pooling over windows of
// pool x pool sums, and a function whose derivative follows from its value.
struct FusedLayer {
  int channels = 1, height = 1, width = 1;  // of the input
  int maps = 1;                             // of the output
  int taps = 0, padding = 0;                // taps per row and column of the filter
  int pool = 1;
  bool maximum = false;  // pooling takes the maximum of each window; otherwise the mean
  FusedFunction function = FusedFunction::identity;
  int weight = 0, bias = 0;  // elements from the beginning of the network's parameters
  // A fully connected layer of Gaussian units: outputs are the negative squared distances of the input from
  // the rows of the weights; without bias.
  bool gaussian = false;
  // A convolution by tensor cores, whose factors are rounded to tf32. Its arrays have rows and planes such
  // that most loads of a warp, of eight rows or columns and four depths, access different banks.
  bool tf32 = false;
  // A fully connected layer whose weights and biases a block copies to its shared memory in each step.
  bool resident = false;

  friend COSMATI_CONSTEXPR bool operator==(FusedLayer const&, FusedLayer const&) = default;
  COSMATI_CONSTEXPR bool is_convolution() const { return taps > 0; }
  // A convolution reads its input with its padding: rows of row() elements, planes of plane() elements. A
  // thread computes the sums of a window of its pooling.
  COSMATI_CONSTEXPR int slots() const {
    return pool == 2 ? fused_slots(columns(), width + 2 * padding) : columns();
  }
  COSMATI_CONSTEXPR int row() const {
    if (tf32) return tf32_row();
    return pool == 2 ? fused_row(width + 2 * padding, slots()) : width + 2 * padding;
  }
  COSMATI_CONSTEXPR int tf32_row() const {
    int row = width + 2 * padding;
    while (row % 32 < 8 || row % 32 > 24) ++row;
    return row;
  }
  COSMATI_CONSTEXPR int plane() const {
    int const plane = (height + 2 * padding) * row();
    return tf32 && channels > 1 ? spread_planes(plane, true) : plane;
  }
  static COSMATI_CONSTEXPR int spread_planes(int size, bool of_eight_pixels) {
    while (of_eight_pixels ? size % 16 != 8 : size % 8 != 4) ++size;
    return size;
  }
  COSMATI_CONSTEXPR int inputs() const { return channels * height * width; }
  COSMATI_CONSTEXPR int sum_rows() const { return is_convolution() ? height + 2 * padding - taps + 1 : 1; }
  COSMATI_CONSTEXPR int sum_columns() const { return is_convolution() ? width + 2 * padding - taps + 1 : 1; }
  COSMATI_CONSTEXPR int rows() const { return sum_rows() / pool; }
  COSMATI_CONSTEXPR int columns() const { return sum_columns() / pool; }
  COSMATI_CONSTEXPR int pixels() const { return rows() * columns(); }
  COSMATI_CONSTEXPR int outputs() const { return maps * pixels(); }
  COSMATI_CONSTEXPR int filter() const { return taps * taps; }
  COSMATI_CONSTEXPR int weights() const { return maps * (is_convolution() ? channels * filter() : inputs()); }
  // In shared memory a filter begins at a multiple of 16 bytes, unless tensor cores multiply it.
  COSMATI_CONSTEXPR int filter_pitch() const { return tf32 ? filter() | 1 : (filter() + 3) / 4 * 4; }
  COSMATI_CONSTEXPR int filters() const { return maps * channels * filter_pitch(); }
  // The gradients of all sums: rows of gradient_row() elements. The data gradient reads them with a margin,
  // in full windows around tiles of 2 x 2 inputs.
  COSMATI_CONSTEXPR int margin_extent(int extent, int sums) const {
    int const read = (extent + 1) / 2 * 2 + padding + taps - 1, stored = sums + 2 * (taps - 1);
    return read > stored ? read : stored;
  }
  COSMATI_CONSTEXPR int data_slots() const {
    return fused_slots((width + 1) / 2, margin_extent(width, sum_columns()));
  }
  COSMATI_CONSTEXPR int gradient_row(bool margin) const {
    if (tf32) {  // eight inputs of two adjacent rows are in different banks
      int row = margin ? margin_extent(width, sum_columns()) : sum_columns();
      while (margin && (row - width) % 8 != 0) ++row;
      return row;
    }
    return margin ? fused_row(margin_extent(width, sum_columns()), data_slots()) : odd_pairs(sum_columns());
  }
  COSMATI_CONSTEXPR int gradient_plane(bool margin) const {
    int const plane = (margin ? margin_extent(height, sum_rows()) : sum_rows()) * gradient_row(margin);
    return tf32 ? spread_planes(plane, margin) : plane;
  }
  COSMATI_CONSTEXPR int gradient_size(bool margin) const {
    return (maps * gradient_plane(margin) + 3) / 4 * 4;
  }
  // With tensor cores, the number of parts into which the warps divide the pixels of a filter gradient.
  COSMATI_CONSTEXPR int gradient_parts(int threads) const {
    int const tiles = (channels * filter() + 15) / 16;
    int parts = 1;
    while (tf32 && parts < 8 && 2 * parts * tiles <= threads / 32 && 2 * parts <= sum_rows()) parts *= 2;
    return parts;
  }
};

inline constexpr int max_fused_layers = 8;
inline constexpr int max_fused_columns = 32;       // a row of sums is kept in registers
inline constexpr int max_fused_positions = 65536;  // positions of maxima are stored in 16 bits

struct FusedNetwork {
  int layers = 0;
  FusedLayer layer[max_fused_layers] = {};
  int images = 1;  // images that a block computes together
  int threads = 512;
  int blocks = 1;  // resident blocks per multiprocessor
  bool adam = false;
  bool nesterov = false;
  bool team = false;  // several devices train together

  friend COSMATI_CONSTEXPR bool operator==(FusedNetwork const&, FusedNetwork const&) = default;
  COSMATI_CONSTEXPR int classes() const { return layer[layers - 1].maps; }
};

// Sixteen lanes add the products of a gradient over the images of a batch, four at a time.
inline constexpr int fused_lanes = 16, fused_pitch = 4 * fused_lanes;

// Offsets in floats, all multiples of 4.
struct FusedLayout {
  // One part per image: value[i] is the input of layer i, value[layers] the scores; gradient[i] the gradient
  // of the sums from which value[i] was computed; positions[i] has 16 bits for each maximum, the offset of
  // its sum within the window in value[i].
  int value[max_fused_layers + 1] = {}, gradient[max_fused_layers + 1] = {}, positions[max_fused_layers] = {};
  int image = 0;  // the size of an image's part
  // Once per block: the filters and biases of convolutions, and the sums of their gradients; for each
  // convolution its weights, then its biases.
  int filters[max_fused_layers] = {}, sums[max_fused_layers] = {};
  int weights[max_fused_layers] = {};  // resident weights of a fully connected layer, then its biases
  int first_sum = 0, all_sums = 0;     // where the sums begin; their number, a multiple of 4
  int scratch = 0;                     // gradients with margins, or partial sums of a fully connected layer
  int scratch_size = 0;
  int total = 0;
  // Once per batch, in global memory: rows of the inputs and of the gradients of fully connected layers.
  int saved_input[max_fused_layers] = {}, saved_gradient[max_fused_layers] = {}, saved_rows = 0;
};

// The number of parts into which a block divides the outputs, whose rows of weights it adds in a data
// gradient.
COSMATI_CONSTEXPR int fused_parts(FusedNetwork const& network, int i) {
  FusedLayer const& layer = network.layer[i];
  int const parts = network.threads / (layer.inputs() / 4);
  return parts < 1 ? 1 : parts < layer.maps ? parts : layer.maps;
}

COSMATI_CONSTEXPR FusedLayout layout_of(FusedNetwork const& network) {
  FusedLayout at;
  auto const take = [](int& end, int count) {
    int const begin = end;
    end += (count + 3) / 4 * 4;
    return begin;
  };
  for (int i = 0; i <= network.layers; ++i) {
    FusedLayer const& before = network.layer[i > 0 ? i - 1 : 0];
    if (i > 0) at.gradient[i] = take(at.image, before.outputs());
    if (i == network.layers) {
      at.value[i] = take(at.image, before.outputs());
      break;
    }
    FusedLayer const& layer = network.layer[i];
    at.value[i] = take(at.image, layer.is_convolution() ? layer.channels * layer.plane() : layer.inputs());
    if (layer.maximum) at.positions[i] = take(at.image, (layer.outputs() + 1) / 2);
  }
  at.total = network.images * at.image;
  for (int i = 0; i < network.layers; ++i)
    if (network.layer[i].is_convolution())
      at.filters[i] = take(at.total, network.layer[i].filters() + network.layer[i].maps);
  for (int i = 0; i < network.layers; ++i)
    if (FusedLayer const& layer = network.layer[i]; layer.resident)
      at.weights[i] = take(at.total, layer.weights() + layer.maps);
  at.first_sum = at.total;
  for (int i = 0; i < network.layers; ++i)
    if (network.layer[i].is_convolution())
      at.sums[i] = take(at.total, network.layer[i].weights() + network.layer[i].maps);
  at.all_sums = at.total - at.first_sum;
  at.scratch = at.total;
  for (int i = 0; i < network.layers; ++i) {
    FusedLayer const& layer = network.layer[i];
    int needed = network.images * (layer.is_convolution() ? layer.gradient_size(i > 0)
                                                          : fused_parts(network, i) * layer.inputs());
    int const parts = layer.gradient_parts(network.threads);
    if (layer.is_convolution() && parts > 1) needed += parts * layer.weights();
    if (needed > at.scratch_size) at.scratch_size = needed;
    if (layer.is_convolution()) continue;
    at.saved_input[i] = take(at.saved_rows, layer.inputs());
    at.saved_gradient[i] = take(at.saved_rows, layer.maps);
  }
  at.scratch_size = (at.scratch_size + 3) / 4 * 4;
  at.total += at.scratch_size;
  return at;
}

// Makes the weights of fully connected layers resident, the last ones first (not those of the first layer),
// as long as they fit in `bytes` of shared memory together with all other arrays, and are small: larger
// weights are better left to the L1 cache, which shrinks as a block's shared memory grows
// (docs/decisions/0024).
inline constexpr int max_resident_weights = 12 * 1024;  // floats
COSMATI_CONSTEXPR FusedNetwork with_resident_weights(FusedNetwork network, int bytes) {
  int all = 0;
  for (int i = network.layers - 1; i > 0 && !network.layer[i].is_convolution(); --i) {
    FusedNetwork more = network;
    more.layer[i].resident = true;
    all += network.layer[i].weights();
    if (network.layer[i].inputs() % 4 != 0 || all > max_resident_weights || layout_of(more).total > bytes / 4)
      break;
    network = more;
  }
  return network;
}

}  // namespace cosmati
