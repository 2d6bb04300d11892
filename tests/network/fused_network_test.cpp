// Training by one kernel gives the losses and parameters of a step in double precision, for networks with
// each kind of pooling, function and optimizer, batches that do not fill the blocks, and several steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cosmati/arch/emulator.h"
#include "cosmati/network/training.h"

namespace cosmati {
namespace {

constexpr int align(int count) { return (count + 15) / 16 * 16; }

constexpr FusedNetwork with_parameters(FusedNetwork network) {
  int end = 0;
  for (int i = 0; i < network.layers; ++i) {
    network.layer[i].weight = end;
    end += align(network.layer[i].weights());
    network.layer[i].bias = end;
    if (!network.layer[i].gaussian) end += align(network.layer[i].maps);
  }
  return network;
}

constexpr FusedNetwork maxima() {
  FusedNetwork network;
  network.layers = 4;
  network.layer[0] = {2, 8, 12, 3, 3, 1, 2, true, FusedFunction::relu};
  network.layer[1] = {3, 4, 6, 4, 3, 0, 1, false, FusedFunction::relu};
  network.layer[2] = {4, 2, 4, 12, 0, 0, 1, false, FusedFunction::relu};
  network.layer[3] = {12, 1, 1, 5};
  network.images = 2;
  network.threads = 64;
  return with_parameters(network);
}

constexpr FusedNetwork means() {
  FusedNetwork network;
  network.layers = 4;
  network.layer[0] = {1, 9, 10, 2, 3, 1, 2, false, FusedFunction::sigmoid};  // a row of sums is left over
  network.layer[1] = {2, 4, 5, 4, 2, 1, 1, false, FusedFunction::scaled_tanh};
  network.layer[2] = {4, 5, 6, 4, 5, 2, 2, true, FusedFunction::scaled_tanh};
  network.layer[3] = {4, 2, 3, 40};
  network.layer[3].gaussian = true;
  network.images = 1;
  network.threads = 96;
  return with_parameters(network);
}

// As many channels as a step of a tensor core has, one more, and fewer; filter gradients in parts and not.
constexpr FusedNetwork wide() {
  FusedNetwork network;
  network.layers = 4;
  network.layer[0] = {1, 10, 12, 8, 3, 1, 2, true, FusedFunction::relu};
  network.layer[1] = {8, 5, 6, 9, 3, 1, 1, false, FusedFunction::scaled_tanh};
  network.layer[2] = {9, 5, 6, 4, 4, 0, 1, false, FusedFunction::relu};
  network.layer[3] = {4, 2, 3, 5};
  network.images = 2;
  network.threads = 256;
  return with_parameters(network);
}

constexpr FusedNetwork with_tf32(FusedNetwork network) {
  for (int i = 0; i < network.layers; ++i) network.layer[i].tf32 = network.layer[i].is_convolution();
  return network;
}
constexpr FusedNetwork with_adam(FusedNetwork network) {
  network.adam = true;
  return network;
}
constexpr FusedNetwork with_nesterov(FusedNetwork network) {
  network.nesterov = true;
  return network;
}

double value_of(FusedFunction function, double x) {
  if (function == FusedFunction::relu) return std::max(x, 0.0);
  if (function == FusedFunction::sigmoid) return 1 / (1 + std::exp(-x));
  if (function == FusedFunction::scaled_tanh) return 1.7159 * std::tanh(x * 2 / 3);
  return x;
}
double derivative_of(FusedFunction function, double y) {
  if (function == FusedFunction::relu) return y > 0 ? 1 : 0;
  if (function == FusedFunction::sigmoid) return y * (1 - y);
  if (function == FusedFunction::scaled_tanh) return 2.0 / 3 * (1.7159 - y * y / 1.7159);
  return 1;
}

struct State {
  std::vector<double> value, velocity, second;
};

// One output of a layer: the position of its maximum among the sums, or -1 for the mean, and its value.
template <class Use>
void each_product(FusedLayer const& layer, int output, int sum_row, int sum_column, Use const& use) {
  if (!layer.is_convolution()) {
    for (int e = 0; e < layer.inputs(); ++e) use(e, layer.weight + output * layer.inputs() + e);
    return;
  }
  for (int c = 0; c < layer.channels; ++c)
    for (int r = 0; r < layer.taps; ++r)
      for (int s = 0; s < layer.taps; ++s) {
        int const h = sum_row + r - layer.padding, w = sum_column + s - layer.padding;
        if (h >= 0 && w >= 0 && h < layer.height && w < layer.width)
          use((c * layer.height + h) * layer.width + w,
              layer.weight + ((output * layer.channels + c) * layer.taps + r) * layer.taps + s);
      }
}

struct Steps {
  std::vector<unsigned char> pixels;
  std::vector<std::vector<int>> order, labels;
  float scale = 1 / 200.0F, shift = -0.6F, rate = 0.05F;
};

// The loss of image `number` divided by `size`, whose gradients are added.
double add_image(FusedNetwork const& network, Steps const& steps, State const& state, int number, int label,
                 int size, std::vector<double>& gradient) {
  std::vector<std::vector<double>> value(1), back(static_cast<std::size_t>(network.layers) + 1);
  std::vector<std::vector<int>> position;
  for (int e = 0; e < network.layer[0].inputs(); ++e)
    value[0].push_back(steps.pixels[static_cast<std::size_t>(number * network.layer[0].inputs() + e)] *
                           static_cast<double>(steps.scale) +
                       static_cast<double>(steps.shift));
  auto const at = [](auto& values, int i) -> auto& { return values[static_cast<std::size_t>(i)]; };
  for (int i = 0; i < network.layers; ++i) {
    FusedLayer const& layer = network.layer[i];
    value.emplace_back();
    position.emplace_back();
    for (int e = 0; e < layer.outputs(); ++e) {
      int const map = e / layer.pixels(), row = e % layer.pixels() / layer.columns(),
                column = e % layer.columns();
      double best = 0;
      int where = 0;
      for (int p = 0; p < layer.pool * layer.pool; ++p) {
        int const y = row * layer.pool + p / layer.pool, x = column * layer.pool + p % layer.pool;
        double sum = 0;
        each_product(layer, map, y, x, [&](int from, int weight) {
          double const input = at(value[static_cast<std::size_t>(i)], from), w = at(state.value, weight);
          sum += layer.gaussian ? -(input - w) * (input - w) : input * w;
        });
        if (!layer.maximum) best += sum / (layer.pool * layer.pool);
        if (layer.maximum && (p == 0 || sum > best)) best = sum, where = p;
      }
      value.back().push_back(
          value_of(layer.function, best + (layer.gaussian ? 0 : at(state.value, layer.bias + map))));
      position.back().push_back(where);
    }
  }
  std::vector<double> const& scores = value.back();
  double sum = 0;
  for (double const score : scores) sum += std::exp(score);
  for (std::size_t j = 0; j < scores.size(); ++j)
    back.back().push_back((std::exp(scores[j]) / sum - (static_cast<int>(j) == label ? 1 : 0)) / size);
  for (int i = network.layers; i-- > 0;) {
    FusedLayer const& layer = network.layer[i];
    auto& inputs = at(back, i);
    inputs.assign(static_cast<std::size_t>(layer.inputs()), 0);
    for (int e = 0; e < layer.outputs(); ++e) {
      int const map = e / layer.pixels(), row = e % layer.pixels() / layer.columns(),
                column = e % layer.columns();
      double const dy = at(at(back, i + 1), e) * derivative_of(layer.function, at(at(value, i + 1), e));
      if (!layer.gaussian) at(gradient, layer.bias + map) += dy;
      for (int p = 0; p < layer.pool * layer.pool; ++p) {
        if (layer.maximum && p != at(at(position, i), e)) continue;
        double const share = layer.maximum ? dy : dy / (layer.pool * layer.pool);
        each_product(layer, map, row * layer.pool + p / layer.pool, column * layer.pool + p % layer.pool,
                     [&](int from, int weight) {
                       double const x = at(at(value, i), from), w = at(state.value, weight);
                       at(gradient, weight) += share * (layer.gaussian ? 2 * (x - w) : x);
                       at(inputs, from) += share * (layer.gaussian ? 2 * (w - x) : w);
                     });
      }
    }
  }
  return (std::log(sum) - at(scores, label)) / size;
}

template <FusedNetwork network>
void expect_reference(int size, int step_count, int blocks) {
  constexpr FusedLayout layout = layout_of(network);
  constexpr FusedLayer last = network.layer[network.layers - 1];
  constexpr int images = 11;
  constexpr int count = last.weight + align(last.weights()) + (last.gaussian ? 0 : align(last.maps));
  unsigned random = 1;
  auto const next = [&] { return (random = random * 1664525 + 1013904223) >> 8; };
  Steps steps;
  for (int e = 0; e < images * network.layer[0].inputs(); ++e)
    steps.pixels.push_back(static_cast<unsigned char>(next() % 256));
  State state;
  state.value.assign(count, 0);
  for (int i = 0; i < network.layers; ++i)
    for (int e = 0; e < network.layer[i].weights() + network.layer[i].maps; ++e) {
      FusedLayer const& layer = network.layer[i];
      if (layer.gaussian && e >= layer.weights()) continue;
      int const element = e < layer.weights() ? layer.weight + e : layer.bias + e - layer.weights();
      state.value[static_cast<std::size_t>(element)] = static_cast<float>((next() % 1000 / 500.0 - 1) * 0.4);
    }
  std::vector<double> const start = state.value;
  state.velocity.assign(count, 0), state.second.assign(count, 0);
  std::vector<float> values(state.value.begin(), state.value.end()), velocity(count), second(count);
  int const pitch = (size + fused_pitch - 1) / fused_pitch * fused_pitch;
  std::vector<float> saved(static_cast<std::size_t>(pitch * layout.saved_rows)),
      image_losses(static_cast<std::size_t>(size));
  std::vector<Vector<float, 4>> sums(static_cast<std::size_t>(blocks * layout.all_sums / 4));
  std::vector<float> losses(static_cast<std::size_t>(step_count));
  std::vector<int> rows;
  for (int step = 0; step < step_count; ++step) {
    steps.order.emplace_back(), steps.labels.emplace_back();
    for (int b = 0; b < size; ++b) steps.order.back().push_back(static_cast<int>(next() % images));
    for (int b = 0; b < size; ++b) steps.labels.back().push_back(static_cast<int>(next() % last.maps));
    rows.insert(rows.end(), steps.order.back().begin(), steps.order.back().end());
    rows.insert(rows.end(), steps.labels.back().begin(), steps.labels.back().end());
    float const numbers[] = {steps.rate, static_cast<float>(1 - std::pow(0.9, step + 1)),
                             static_cast<float>(1 - std::pow(0.999, step + 1))};
    for (float const number : numbers) rows.push_back(__builtin_bit_cast(int, number));
  }
  unsigned counter = 0;
  FusedTrainingArguments p;
  p.pixels = steps.pixels.data(), p.scale = steps.scale, p.shift = steps.shift;
  p.rows = reinterpret_cast<unsigned char const*>(rows.data());
  p.row_bytes = (2 * size + 3) * 4, p.labels_at = 4 * size, p.numbers_at = 8 * size;
  p.size = p.total = size, p.steps = step_count;
  p.values = values.data(), p.velocity = velocity.data(), p.second = second.data(), p.losses = losses.data();
  p.momentum = 0.9F, p.weight_decay = 1e-3F;
  p.beta1 = 0.9F, p.beta2 = 0.999F, p.rest1 = 0.1F, p.rest2 = 0.001F, p.epsilon = 1e-3F;
  p.saved = saved.data(), p.pitch = pitch, p.sums = &sums[0][0], p.image_losses = image_losses.data();
  p.counter = &counter;
  emulator::launch_kernel<fused_training_kernel<FusedTraits<network>>>(
      {blocks}, network.threads, static_cast<unsigned>(layout.total) * 4, p, 2);
  for (int step = 0; step < step_count; ++step) {
    std::vector<double> gradient(count);
    double loss = 0;
    for (int b = 0; b < size; ++b)
      loss += add_image(
          network, steps, state, steps.order[static_cast<std::size_t>(step)][static_cast<std::size_t>(b)],
          steps.labels[static_cast<std::size_t>(step)][static_cast<std::size_t>(b)], size, gradient);
    EXPECT_NEAR(losses[static_cast<std::size_t>(step)], loss, (network.layer[0].tf32 ? 1e-2 : 1e-5) * loss)
        << "step " << step;
    for (std::size_t e = 0; e < count; ++e) {
      double const g = gradient[e] + 1e-3 * state.value[e];
      double& v = state.velocity[e];
      if (network.adam) {
        v = 0.9 * v + 0.1 * g;
        state.second[e] = 0.999 * state.second[e] + 0.001 * g * g;
        state.value[e] -= 0.05 * (v / (1 - std::pow(0.9, step + 1))) /
                          (std::sqrt(state.second[e] / (1 - std::pow(0.999, step + 1))) + 1e-3);
      } else {
        v = 0.9 * v + g;
        state.value[e] -= 0.05 * (network.nesterov ? g + 0.9 * v : v);
      }
    }
  }
  if constexpr (network.layer[0].tf32) {  // relative to the change of all parameters of a layer
    for (int i = 0; i < network.layers; ++i) {
      double change = 0, difference = 0;
      for (int j = 0; j < network.layer[i].weights(); ++j) {
        auto const e = static_cast<std::size_t>(network.layer[i].weight + j);
        change += std::pow(state.value[e] - start[e], 2),
            difference += std::pow(values[e] - state.value[e], 2);
      }
      EXPECT_LT(std::sqrt(difference), 5e-3 * std::sqrt(change)) << "layer " << i;
    }
    return;
  }
  for (std::size_t e = 0; e < count; ++e)
    ASSERT_NEAR(values[e], state.value[e], network.adam ? 1e-4 : 2e-6) << "parameter " << e;
}

TEST(FusedNetwork, MaximaEqualTheReference) {
  expect_reference<maxima()>(1, 1, 1);
  expect_reference<maxima()>(7, 3, 2);  // a block has two passes, the last one half an image short
  expect_reference<maxima()>(5, 2, 4);  // a block has no images
}
TEST(FusedNetwork, MeansAndGaussianUnitsEqualTheReference) {
  expect_reference<means()>(3, 2, 2);
  expect_reference<with_nesterov(means())>(2, 3, 3);
}
TEST(FusedNetwork, AdamEqualsTheReference) { expect_reference<with_adam(maxima())>(6, 3, 3); }
TEST(FusedNetwork, TensorCoresEqualTheReferenceButForRounding) {
  expect_reference<with_tf32(maxima())>(7, 1, 2);
  expect_reference<with_tf32(means())>(3, 2, 2);
  expect_reference<with_tf32(wide())>(3, 2, 2);
  expect_reference<with_tf32(wide())>(9, 1, 2);
}
TEST(FusedNetwork, WideLayersEqualTheReference) { expect_reference<wide()>(3, 2, 2); }
// The resident weights are those of the last layer, of the last two layers, or of Gaussian units.
TEST(FusedNetwork, ResidentWeightsEqualTheReference) {
  constexpr int all = 228 * 1024, without = 4 * layout_of(maxima()).total;
  constexpr FusedNetwork one = with_resident_weights(maxima(), without + 4 * 68),
                         both = with_resident_weights(maxima(), all);
  static_assert(one.layer[3].resident && !one.layer[2].resident && both.layer[2].resident);
  expect_reference<one>(6, 3, 3);
  expect_reference<both>(7, 3, 2);
  expect_reference<with_adam(both)>(6, 3, 3);
  expect_reference<with_resident_weights(means(), all)>(5, 2, 3);
  static_assert(with_resident_weights(maxima(), without) == maxima());
}
TEST(FusedNetwork, BatchesBeyondAPitchEqualTheReference) { expect_reference<maxima()>(70, 1, 2); }

// The barrier orders the writes of all blocks, and needs no reset.
struct Rounds {
  unsigned* counter;
  int* sum;
};
template <int rounds>
COSMATI_KERNEL(32, 1)
count_blocks(COSMATI_PARAMETER Rounds params) {
  for (int round = 0; round < rounds; ++round) {
    if (arch::thread() == 0)
      params.sum[arch::block_x()] += round == 0 ? 1 : params.sum[arch::grid_x() + round - 1];
    arch::grid_barrier(params.counter);
    if (arch::block_x() == 0 && arch::thread() == 0)
      for (int block = 0; block < arch::grid_x(); ++block)
        params.sum[arch::grid_x() + round] += params.sum[block];
    arch::grid_barrier(params.counter);
  }
}
TEST(FusedNetwork, TheBarrierOrdersAllBlocks) {
  for (int const blocks : {1, 2, 5}) {
    unsigned counter = 0;
    std::vector<int> sum(static_cast<std::size_t>(blocks) + 3);
    for (int launch = 1; launch <= 2; ++launch) {
      std::fill(sum.begin(), sum.end(), 0);
      emulator::launch_kernel<count_blocks<3>>({blocks}, 32, 0, Rounds{&counter, sum.data()}, 2);
      EXPECT_EQ(sum[static_cast<std::size_t>(blocks)], blocks);
      EXPECT_EQ(sum[static_cast<std::size_t>(blocks) + 1], blocks * (1 + blocks));
    }
  }
}

}  // namespace
}  // namespace cosmati
