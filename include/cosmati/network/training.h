// Trains a small network for many steps in one kernel, or computes the scores of many images. A block runs
// the forward and backward passes of its images in shared memory. After a grid barrier, the blocks divide the
// parameters, add their gradients and update them; a second barrier ends the step. Devices that train
// together each compute the gradients of their images and send them to the others; each adds those of all and
// updates its own parameters. Images are assigned to blocks by number and sums have a fixed order, so the
// same grid produces the same bits.
#pragma once
#include "cosmati/arch/grid_barrier.h"
#include "cosmati/network/convolution_tile.h"
#include "cosmati/network/linear_tile.h"
#include "cosmati/network/matrix_convolution.h"
#include "cosmati/network/update.h"

namespace cosmati {

template <FusedNetwork network_>
struct FusedTraits {
  static constexpr FusedNetwork network = network_;
};

// The inputs of one step.
struct FusedRow {
  int const* order;
  int const* labels;
  FusedNumbers numbers;
};
COSMATI_DEVICE FusedRow row_of_step(FusedTrainingArguments const& p, int step) {
  unsigned char const* const row = p.rows + step * p.row_bytes;
  auto const* const numbers = reinterpret_cast<float const*>(row + p.numbers_at);
  return {reinterpret_cast<int const*>(row),
          reinterpret_cast<int const*>(row + p.labels_at),
          {numbers[0], numbers[1], numbers[2], p.team.step + static_cast<unsigned>(step)}};
}

template <FusedNetwork network, int i, bool convolution, bool tf32>
struct TileOf {
  using type = LinearTile<network, i>;
};
template <FusedNetwork network, int i>
struct TileOf<network, i, true, false> {
  using type = ConvolutionTile<network, i>;
};
template <FusedNetwork network, int i>
struct TileOf<network, i, true, true> {
  using type = MatrixConvolutionTile<network, i>;
};

template <FusedNetwork network>
struct FusedPass : FusedBlock<network> {
  using Block = FusedBlock<network>;
  using Block::at, Block::images, Block::threads, Block::warps, Block::shared;
  static constexpr FusedLayer input = network.layer[0];

  template <int i>
  using Tile = typename TileOf<network, i, network.layer[i].is_convolution(), network.layer[i].tf32>::type;
  template <int i>
  COSMATI_DEVICE Tile<i> tile() const {
    return {{shared}};
  }

  // Clears the images' arrays; their padding stays zero.
  COSMATI_DEVICE void clear() const {
    constexpr int all = images * at.image;
    COSMATI_NO_UNROLL
    for (int e = arch::thread(); e < all; e += threads) shared[e] = 0;
  }

  // The loads of all layers are in flight before the first one is stored.
  template <int i = 0>
  COSMATI_DEVICE void load_filters(FusedTrainingArguments const& p) const {
    if constexpr (i < network.layers && network.layer[i].is_convolution()) {
      typename Tile<i>::Filters filters;
      tile<i>().load(p.values, filters);
      load_filters<i + 1>(p);
      tile<i>().store(filters);
    } else if constexpr (i < network.layers) {
      load_filters<i + 1>(p);
    }
  }

  // Starts to copy the resident weights and their biases.
  template <int i = 0>
  COSMATI_DEVICE void copy_weights(FusedTrainingArguments const& p) const {
    if constexpr (i < network.layers) {
      if constexpr (network.layer[i].resident) tile<i>().copy_weights(p.values);
      copy_weights<i + 1>(p);
    }
  }
  // Whether layer i is the first one with resident weights.
  static COSMATI_CONSTEXPR bool is_first_resident(int i) {
    for (int j = 0; j < i; ++j)
      if (network.layer[j].resident) return false;
    return i < network.layers && network.layer[i].resident;
  }

  // Loads the images of the batch starting at `first`; beyond the batch, loads its last image.
  COSMATI_DEVICE void load_images(FusedTrainingArguments const& p, FusedRow const& row, int first) const {
    constexpr int run = input.width % 4 == 0 ? 4 : 1, runs = input.inputs() / run;
    COSMATI_NO_UNROLL
    for (int task = arch::thread(); task < images * runs; task += threads) {
      int const image = task / runs, e = task % runs * run;
      int const number = first + image < p.size ? first + image : p.size - 1;
      auto const bytes = arch::load_constant<Vector<unsigned char, run>>(
          p.pixels + Index{row.order[number]} * input.inputs() + e);
      int const channel = e / (input.height * input.width), rest = e % (input.height * input.width);
      float* const to = this->template value<0>(image) +
                        Block::template element<0>(channel, rest / input.width, rest % input.width);
      COSMATI_UNROLL
      for (int j = 0; j < run; ++j)
        to[j] = fused_factor<input.tf32>(arch::multiply_add(static_cast<float>(bytes[j]), p.scale, p.shift));
    }
  }

  template <int i = 0>
  COSMATI_DEVICE void forward(FusedTrainingArguments const& p) const {
    if constexpr (i < network.layers) {
      if constexpr (network.layer[i].is_convolution())
        tile<i>().forward();
      else
        tile<i>().forward(p.values);
      if constexpr (is_first_resident(i + 1)) arch::wait_copies<0>();
      arch::block_barrier();
      forward<i + 1>(p);
    }
  }

  COSMATI_DEVICE void store_scores(FusedTrainingArguments const& p, int first) const {
    constexpr int classes = network.classes();
    COSMATI_NO_UNROLL
    for (int e = arch::thread(); e < images * classes; e += threads) {
      int const image = first + e / classes;
      if (image < p.size)
        p.scores[Index{image} * classes + e % classes] =
            this->template value<network.layers>(e / classes)[e % classes];
    }
  }

  // Computes the cross-entropy of the softmax of the scores, and the gradient of its mean over the batch: one
  // warp per image. Images beyond the batch have gradients of 0.
  COSMATI_DEVICE void loss(FusedTrainingArguments const& p, FusedRow const& row, int first) const {
    constexpr int classes = network.classes(), each = (classes + 31) / 32;
    int const lane = arch::thread() % 32;
    COSMATI_NO_UNROLL
    for (int image = arch::thread() / 32; image < images; image += warps) {
      float const* const scores = this->template value<network.layers>(image);
      float* const gradient = this->template gradient<network.layers>(image);
      bool const exists = first + image < p.size;
      int const label = exists ? row.labels[first + image] : 0;
      float largest = scores[0];
      COSMATI_NO_UNROLL
      for (int j = 1; j < classes; ++j) largest = larger(largest, scores[j]);
      float sum = 0;
      COSMATI_NO_UNROLL
      for (int j = lane; j < 32 * each; j += 32) sum += j < classes ? exponential(scores[j] - largest) : 0.0f;
      sum = sum_of_lanes<32>(sum);
      COSMATI_NO_UNROLL
      for (int j = lane; j < classes; j += 32) {
        float const probability = exponential(scores[j] - largest) / sum;
        float const difference = probability - (j == label ? 1.0f : 0.0f);
        gradient[j] = exists ? difference / static_cast<float>(p.total) : 0.0f;
      }
      if (exists && lane == 0) p.image_losses[first + image] = logarithm(sum) + largest - scores[label];
    }
  }

  template <int i = network.layers - 1>
  COSMATI_DEVICE void backward(FusedTrainingArguments const& p, int first, bool first_of_block) const {
    auto const own = tile<i>();
    if constexpr (network.layer[i].is_convolution()) {
      own.clear_sum_gradients();
      arch::block_barrier();
      own.spread();
      arch::block_barrier();
      own.filter_gradient(first_of_block);
      if constexpr (i > 0) own.data_gradient();
    } else {
      if constexpr (i > 0) {
        own.partial_data_gradient(p.values);
        arch::block_barrier();
        own.data_gradient();
      }
      own.save(p.saved, p.pitch, first);
    }
    arch::block_barrier();
    if constexpr (i > 0) backward<i - 1>(p, first, first_of_block);
  }

  COSMATI_DEVICE static int first_image() { return arch::block_x() * images; }
  // Computes losses and gradients of this block's images; the first ones have already been loaded.
  COSMATI_DEVICE void run(FusedTrainingArguments const& p, FusedRow const& row) const {
    int const own = first_image();
    if (own >= p.size) return;
    load_filters(p);
    copy_weights(p);
    COSMATI_NO_UNROLL
    for (int first = own; first < p.size; first += arch::grid_x() * images) {
      if (first != own) load_images(p, row, first);
      arch::block_barrier();
      forward(p);
      if (p.scores != nullptr) {
        store_scores(p, first);
        continue;
      }
      loss(p, row, first);
      arch::block_barrier();
      backward(p, first, first == own);
    }
    if (p.scores != nullptr) return;
    constexpr int all = at.all_sums, first_sum = at.first_sum;
    float* const sums = p.sums + Index{arch::block_x()} * all;
    COSMATI_NO_UNROLL
    for (int e = 4 * arch::thread(); e < all; e += 4 * threads)
      arch::store_global(sums + e, arch::load<Four>(shared + first_sum + e));
  }
};

// Returns this device's part of the mean of the batch's losses; called by one warp.
COSMATI_DEVICE float mean_loss(FusedTrainingArguments const& p) {
  int const lane = arch::thread() % 32;
  float sum = 0;
  COSMATI_NO_UNROLL
  for (int first = lane; first < p.size; first += 8 * 32) {
    COSMATI_UNROLL
    for (int image = first; image < first + 8 * 32; image += 32)
      sum += image < p.size ? p.image_losses[image] : 0.0f;
  }
  return sum_of_lanes<32>(sum) / static_cast<float>(p.total);
}

// Grid: at most as many blocks as are resident at the same time; dynamic shared memory: FusedLayout::total.
template <class Traits>
COSMATI_KERNEL(Traits::network.threads, Traits::network.blocks)
fused_training_kernel(COSMATI_PARAMETER FusedTrainingArguments params) {
  constexpr FusedNetwork network = Traits::network;
  FusedPass<network> const pass{{&arch::shared_storage<float>()}};
  bool const has_images = pass.first_image() < params.size;
  // The last warp of the grid, which updates the fewest parameters, reports the loss.
  bool const has_loss =
      arch::block_x() == arch::grid_x() - 1 && arch::thread() / 32 == network.threads / 32 - 1;
  pass.clear();
  arch::block_barrier();
  FusedRow row = row_of_step(params, 0);
  if (has_images) pass.load_images(params, row, pass.first_image());
  arch::block_barrier();
  for (int step = 0; step < params.steps; ++step) {
    pass.run(params, row);
    if (params.scores != nullptr) return;
    unsigned const before = arch::arrive_at_grid(params.counter);
    FusedNumbers const numbers = row.numbers;
    if (step + 1 < params.steps) row = row_of_step(params, step + 1);
    if (has_images) pass.load_images(params, row, pass.first_image());
    arch::wait_for_grid(params.counter, before);
    FusedUpdate<network>::run(params, numbers);
    if (has_loss) {
      float loss = mean_loss(params);
      if (arch::thread() % 32 == 0) {
        if constexpr (network.team) {
          int const element = params.team.parameters;
          send_to_team(params.team, numbers.step, element, loss);
          loss = sum_of_team(params.team, numbers.step, element, loss);
        }
        params.losses[step] = loss;
      }
    }
    arch::grid_barrier(params.counter);
  }
}

}  // namespace cosmati
