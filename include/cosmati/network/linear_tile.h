// A fully connected layer of a fused network: the block's images in shared memory, weights from global
// memory, each read once per pass, or resident in shared memory. The gradients of the weights are products
// over the batch, computed by all blocks (network/update.h) from the inputs and gradients that the layer
// saves.
#pragma once
#include "cosmati/network/block.h"

namespace cosmati {

template <FusedNetwork network, int i>
struct LinearTile : FusedBlock<network> {
  using Block = FusedBlock<network>;
  using Block::at, Block::images, Block::threads, Block::warps, Block::shared;
  static constexpr FusedLayer layer = network.layer[i];
  static constexpr int inputs = layer.inputs(), outputs = layer.maps, fours = inputs / 4;
  static constexpr int input_rows = at.saved_input[i], gradient_rows = at.saved_gradient[i];
  static constexpr int scratch_at = at.scratch, parts = fused_parts(network, i);
  static constexpr int weights_at = at.weights[i];
  static_assert(inputs % 4 == 0, "the inputs of a fully connected layer are a multiple of 4");

  COSMATI_DEVICE float* weights() const { return shared + weights_at; }
  COSMATI_DEVICE float const* biases(float const* values) const {
    return layer.resident ? weights() + outputs * inputs : values + layer.bias;
  }
  // Copies the resident weights, and the biases; asynchronous.
  COSMATI_DEVICE void copy_weights(float const* values) const {
    constexpr int runs = outputs * fours, all = runs + (layer.gaussian ? 0 : (outputs + 3) / 4);
    COSMATI_NO_UNROLL
    for (int run = arch::thread(); run < all; run += threads) {
      int const from = run < runs ? layer.weight + 4 * run : layer.bias + 4 * (run - runs);
      arch::copy_async<16>(weights() + 4 * run, values + from, 16);
    }
    arch::commit_copies();
  }

  // Each warp computes some outputs; its lanes share the inputs.
  static constexpr int share = (outputs + warps - 1) / warps, maximum = 32 / images < 8 ? 32 / images : 8;
  static constexpr int rows = share > 4 && maximum > 4 ? 8 : share > 2 ? 4 : share, sums = rows * images;
  static_assert(sums <= 32 && (sums & (sums - 1)) == 0, "each sum of a warp has one or more lanes");
  COSMATI_DEVICE void forward(float const* values) const {
    int const lane = arch::thread() % 32;
    // The image and row of the sum that distribute_sums() leaves in this lane.
    int const own_image = lane * sums / 32 % images, own_row = lane * sums / 32 / images;
    COSMATI_NO_UNROLL
    for (int first = arch::thread() / 32 * rows; first < outputs; first += warps * rows) {
      float sum[sums] = {};
      int const own = first + own_row < outputs ? first + own_row : outputs - 1;
      float const bias = layer.gaussian ? 0 : biases(values)[own];
      add_products(sum, layer.resident ? weights() : values + layer.weight, first, lane);
      distribute_sums<32>(sum, lane);
      if (lane % (32 / sums) == 0 && first + own_row < outputs)
        this->template value<i + 1>(own_image)[Block::template element_of_output<i + 1>(first + own_row)] =
            fused_value<layer.function>(sum[0] + bias);
    }
  }
  // Adds a lane's products of outputs first to first + rows - 1; `from`: the weights of all outputs.
  COSMATI_DEVICE void add_products(float (&sum)[sums], float const* from, int first, int lane) const {
    COSMATI_UNROLL
    for (int q = 0; q < (fours + 31) / 32 * 32; q += 32) {
      if (q + lane >= fours) continue;
      Four w[rows];
      COSMATI_UNROLL
      for (int r = 0; r < rows; ++r) {
        int const output = first + r < outputs ? first + r : outputs - 1;
        w[r] = arch::load<Four>(from + output * inputs + 4 * (q + lane));
      }
      COSMATI_UNROLL
      for (int image = 0; image < images; ++image) {
        auto const x = arch::load<Four>(this->template value<i>(image) + 4 * (q + lane));
        COSMATI_UNROLL
        for (int r = 0; r < rows; ++r) {
          COSMATI_UNROLL
          for (int j = 0; j < 4; ++j) {
            float const difference = w[r][j] - x[j];
            sum[r * images + image] =
                layer.gaussian ? arch::multiply_add(-difference, difference, sum[r * images + image])
                               : arch::multiply_add(w[r][j], x[j], sum[r * images + image]);
          }
        }
      }
    }
  }

  COSMATI_DEVICE float* partial(int part, int image) const {
    return shared + scratch_at + (part * images + image) * inputs;
  }
  // Multiplies weights and gradients, with the outputs divided into parts: four inputs per thread.
  COSMATI_DEVICE void partial_data_gradient(float const* values) const {
    COSMATI_NO_UNROLL
    for (int task = arch::thread(); task < parts * fours; task += threads) {
      int const four = task % fours, part = task / fours;
      Four sum[images] = {};
      if constexpr (layer.resident) {
        for (int o = part; o < outputs; o += parts)
          add_gradient(sum, arch::load<Four>(weights() + o * inputs + 4 * four), o, four);
      } else {
        constexpr int loads = images == 1 ? 12 : 6;  // in flight
        constexpr bool full = outputs % (loads * parts) == 0;
        COSMATI_NO_UNROLL
        for (int first = part; first < outputs; first += loads * parts) {
          Four w[loads];
          COSMATI_UNROLL
          for (int load = 0; load < loads; ++load) {
            int const o = full || first + load * parts < outputs ? first + load * parts : outputs - 1;
            w[load] = arch::load<Four>(values + layer.weight + o * inputs + 4 * four);
          }
          COSMATI_UNROLL
          for (int load = 0; load < loads; ++load) {
            int const o = first + load * parts;
            if (!full && o >= outputs) continue;
            add_gradient(sum, w[load], o, four);
          }
        }
      }
      COSMATI_UNROLL
      for (int image = 0; image < images; ++image) arch::store(partial(part, image) + 4 * four, sum[image]);
    }
  }
  COSMATI_DEVICE void add_gradient(Four (&sum)[images], Four const& w, int output, int four) const {
    COSMATI_UNROLL
    for (int image = 0; image < images; ++image) {
      float const gradient = this->template gradient<i + 1>(image)[output];
      float const* const x = this->template value<i>(image) + 4 * four;
      COSMATI_UNROLL
      for (int j = 0; j < 4; ++j)
        sum[image][j] =
            arch::multiply_add(layer.gaussian ? 2.0f * (w[j] - x[j]) : w[j], gradient, sum[image][j]);
    }
  }
  // Computes gradient(i): the sums of the parts.
  COSMATI_DEVICE void data_gradient() const {
    constexpr FusedLayer before = network.layer[i - 1];
    COSMATI_NO_UNROLL
    for (int task = arch::thread(); task < images * inputs; task += threads) {
      int const e = task % inputs, image = task / inputs;
      float sum = 0;
      COSMATI_UNROLL
      for (int part = 0; part < parts; ++part) sum += partial(part, image)[e];
      this->template gradient<i>(image)[e] = fused_derivative<before.function>(
          sum, this->template value<i>(image)[Block::template element_of_output<i>(e)]);
    }
  }

  // Saves inputs and gradients of the images starting at `first`, a row for each feature.
  COSMATI_DEVICE void save(float* saved, int pitch, int first) const {
    COSMATI_NO_UNROLL
    for (int e = arch::thread(); e < inputs + outputs; e += threads) {
      bool const input = e < inputs;
      Vector<float, images> run;
      COSMATI_UNROLL
      for (int image = 0; image < images; ++image)
        run[image] =
            input ? this->template value<i>(image)[e] : this->template gradient<i + 1>(image)[e - inputs];
      int const row = input ? input_rows + e : gradient_rows + e - inputs;
      arch::store_global(saved + Index{row} * pitch + first, run);
    }
  }
};

}  // namespace cosmati
