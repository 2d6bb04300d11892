// The gradients of the parameters of a fused network over a batch, each computed by sixteen lanes of the grid
// in a fixed order, and the optimizer's step.
#pragma once
#include "cosmati/arch/delivery.h"
#include "cosmati/network/arguments.h"
#include "cosmati/network/block.h"

namespace cosmati {

// The optimizer's numbers for a step (see OptimizerProblem::numbers), and the step's number.
struct FusedNumbers {
  float rate, correction1, correction2;
  unsigned step = 0;
};

// Sends this member's part of a sum to the other members; with `two`, also its part of the sum of the next
// element; `element` is then even.
COSMATI_DEVICE void send_to_team(FusedTeamArguments const& team, unsigned step, int element, float part,
                                 bool two = false, float next = 0) {
  Index const at = team.at(team.member, step, element);
  COSMATI_NO_UNROLL
  for (int m = 0; m < team.members; ++m) {
    if (m == team.member) continue;
    if (two)
      arch::deliver(team.inbox[m] + at, {part, step + 1}, {next, step + 1});
    else
      arch::deliver(team.inbox[m] + at, {part, step + 1});
  }
}
// Returns the sum of all members' parts, in their order.
COSMATI_DEVICE float sum_of_team(FusedTeamArguments const& team, unsigned step, int element, float own) {
  Delivery const* const inbox = team.inbox[team.member];
  Delivery found[max_fused_members] = {};
  COSMATI_UNROLL
  for (int m = 0; m < max_fused_members; ++m)  // all loads in flight
    if (m < team.members) found[m] = arch::look(inbox + team.at(m, step, element));
  float sum = 0;
  COSMATI_UNROLL
  for (int m = 0; m < max_fused_members; ++m) {
    if (m >= team.members) continue;
    sum += m == team.member ? own : arch::take(inbox + team.at(m, step, element), found[m], step + 1);
  }
  return sum;
}

// A parameter and its optimizer's state, loaded before its gradient is known.
template <FusedNetwork network>
struct FusedParameter {
  float value = 0, velocity = 0, second = 0;
  int e;  // negative: none

  COSMATI_DEVICE FusedParameter(FusedTrainingArguments const& p, int element) : e(element) {
    if (e < 0) return;
    value = p.values[e], velocity = p.velocity[e];
    if constexpr (network.adam) second = p.second[e];
  }
  // In a team, before update(): sends the gradient for this device's images, and that of the next parameter
  // if it exists.
  COSMATI_DEVICE void send(FusedTrainingArguments const& p, FusedNumbers const& now, float gradient,
                           FusedParameter const& next, float next_gradient) const {
    if constexpr (network.team)
      if (e >= 0) send_to_team(p.team, now.step, e, gradient, next.e >= 0, next_gradient);
  }
  COSMATI_DEVICE void update(FusedTrainingArguments const& p, FusedNumbers const& now, float gradient) {
    if (e < 0) return;
    if constexpr (network.team) gradient = sum_of_team(p.team, now.step, e, gradient);
    float const g = gradient + p.weight_decay * value;
    if constexpr (network.adam) {
      velocity = p.beta1 * velocity + p.rest1 * g;
      second = p.beta2 * second + p.rest2 * g * g;
      p.second[e] = second;
      value -= now.rate * (velocity / now.correction1) / (square_root(second / now.correction2) + p.epsilon);
    } else {
      velocity = p.momentum * velocity + g;
      value -= now.rate * (network.nesterov ? g + p.momentum * velocity : velocity);
    }
    p.velocity[e] = velocity;
    p.values[e] = value;
  }
};

template <FusedNetwork network>
struct FusedUpdate {
  using Parameter = FusedParameter<network>;
  static constexpr FusedLayout at = layout_of(network);
  static constexpr int groups = 32 / fused_lanes;  // per warp
  static constexpr int tile_inputs = 8;            // per tile

  // A warp updates a pair of groups. A group has four parameters of the convolutions, or 4 outputs x 8 inputs
  // of a fully connected layer's weights, or 4 of its biases.
  static constexpr int pairs_of_sums = (at.all_sums / 4 + groups - 1) / groups;
  static COSMATI_CONSTEXPR int columns(int i) {  // the last column is the biases
    return (network.layer[i].inputs() + tile_inputs - 1) / tile_inputs + (network.layer[i].gaussian ? 0 : 1);
  }
  static COSMATI_CONSTEXPR int tiles(int i) { return (network.layer[i].maps + 3) / 4 * columns(i); }
  static COSMATI_CONSTEXPR int end_of_pairs(int i) {  // number of pairs up to and including layer i
    int pairs = pairs_of_sums;
    for (int j = 0; j <= i; ++j)
      if (!network.layer[j].is_convolution()) pairs += (tiles(j) + groups - 1) / groups;
    return pairs;
  }

  // Computes the gradient of each parameter and updates it. In a team, a warp waits for the others' gradients
  // of its parameters. All members' warps visit pairs in ascending order, so that no two wait for each other.
  COSMATI_DEVICE static void run(FusedTrainingArguments const& p, FusedNumbers const& now) {
    constexpr int warps = network.threads / 32, all = end_of_pairs(network.layers - 1);
    COSMATI_NO_UNROLL
    for (int pair = arch::thread() / 32 * arch::grid_x() + arch::block_x(); pair < all;
         pair += warps * arch::grid_x()) {
      int const group = arch::thread() % 32 / fused_lanes, lane = arch::thread() % fused_lanes;
      if (pair < pairs_of_sums)
        update_convolutions(p, now, pair * groups + group, lane);
      else
        update_layer<0>(p, now, pair, group, lane);
    }
  }

 private:
  // Calls update_linear for the layer that this pair belongs to.
  template <int i>
  COSMATI_DEVICE static void update_layer(FusedTrainingArguments const& p, FusedNumbers const& now, int pair,
                                          int group, int lane) {
    if constexpr (i < network.layers) {
      if constexpr (!network.layer[i].is_convolution()) {
        if (pair < end_of_pairs(i)) {
          update_linear<i>(p, now, (pair - end_of_pairs(i - 1)) * groups + group, lane);
          return;
        }
      }
      update_layer<i + 1>(p, now, pair, group, lane);
    }
  }

  COSMATI_DEVICE static void update_convolutions(FusedTrainingArguments const& p, FusedNumbers const& now,
                                                 int quad, int lane) {
    int const blocks = (p.size + network.images - 1) / network.images;  // the other blocks had no images
    int const last = blocks < arch::grid_x() ? blocks : arch::grid_x();
    constexpr int all = at.all_sums;
    bool const exists = 4 * quad < all;
    int const e = parameter_of_sum<0>(4 * quad + lane / 4);
    Parameter parameter(p, lane % 4 == 0 ? e : -1);
    float sum[4] = {};
    if (exists) {
      float const* const from = p.sums + 4 * quad;
      constexpr int loads = 8;  // in flight
      COSMATI_NO_UNROLL
      for (int first = lane; first < last; first += loads * fused_lanes) {
        COSMATI_UNROLL
        for (int load = 0; load < loads; ++load) {
          int const block = first + load * fused_lanes;
          if (block >= last) continue;
          auto const four = arch::load<Four>(from + Index{block} * all);
          COSMATI_UNROLL
          for (int j = 0; j < 4; ++j) sum[j] += four[j];
        }
      }
    }
    distribute_sums<fused_lanes>(sum, lane);
    parameter.send(p, now, sum[0], {p, -1}, 0);
    parameter.update(p, now, sum[0]);
  }
  // Returns the parameter whose gradient is element e of the convolutions' sums; -1: none.
  template <int i>
  COSMATI_DEVICE static int parameter_of_sum(int e) {
    if constexpr (i < network.layers) {
      if constexpr (network.layer[i].is_convolution()) {
        constexpr int first = at.sums[i] - at.first_sum, weights = network.layer[i].weights();
        int const own = e - first;
        if (own >= 0 && own < weights) return network.layer[i].weight + own;
        if (own >= weights && own < weights + network.layer[i].maps)
          return network.layer[i].bias + own - weights;
      }
      return parameter_of_sum<i + 1>(e);
    }
    return -1;
  }

  template <int i>
  COSMATI_DEVICE static void update_linear(FusedTrainingArguments const& p, FusedNumbers const& now, int tile,
                                           int lane) {
    constexpr FusedLayer layer = network.layer[i];
    constexpr int input_rows = at.saved_input[i], gradient_rows = at.saved_gradient[i];
    constexpr int columns = FusedUpdate::columns(i), inputs = layer.inputs();
    bool const exists = tile < tiles(i);
    int const output = tile / columns * 4, input = tile % columns * tile_inputs;
    bool const bias = input >= inputs;
    // A lane updates two adjacent inputs of an output, or one bias.
    int const own_output = output + lane / 4, own_input = input + lane % 4 * 2;
    bool const updates = exists && own_output < layer.maps && (bias ? lane % 4 == 0 : own_input < inputs);
    int const e = bias ? layer.bias + own_output : layer.weight + own_output * inputs + own_input;
    Parameter first(p, updates ? e : -1), second(p, updates && !bias ? e + 1 : -1);
    float sum[4 * tile_inputs] = {};
    Vector<float, 4> center[4][tile_inputs / 4] = {};
    if constexpr (layer.gaussian) {
      COSMATI_UNROLL
      for (int k = 0; k < 4; ++k) {
        COSMATI_UNROLL
        for (int j = 0; j < tile_inputs; j += 4)
          if (exists && output + k < layer.maps && input + j < inputs)
            center[k][j / 4] = arch::load<Four>(p.values + layer.weight + (output + k) * inputs + input + j);
      }
    }
    if (exists) {
      float const* const dy = p.saved + Index{gradient_rows + output} * p.pitch;
      float const* const x = p.saved + Index{input_rows + (bias ? 0 : input)} * p.pitch;
      COSMATI_NO_UNROLL
      for (int image = 4 * lane; image < p.pitch; image += fused_pitch) {
        Four gradient[4], factor[tile_inputs];
        COSMATI_UNROLL
        for (int k = 0; k < 4; ++k) gradient[k] = arch::load<Four>(dy + k * p.pitch + image);
        COSMATI_UNROLL
        for (int j = 0; j < tile_inputs; ++j)
          factor[j] = bias ? Four{1.0f, 1.0f, 1.0f, 1.0f} : arch::load<Four>(x + j * p.pitch + image);
        COSMATI_UNROLL
        for (int k = 0; k < 4; ++k) {
          COSMATI_UNROLL
          for (int j = 0; j < tile_inputs; ++j) {
            COSMATI_UNROLL
            for (int v = 0; v < 4; ++v) {
              float const by =
                  layer.gaussian ? 2.0f * (factor[j][v] - center[k][j / 4][j % 4]) : factor[j][v];
              sum[tile_inputs * k + j] = arch::multiply_add(gradient[k][v], by, sum[tile_inputs * k + j]);
            }
          }
        }
      }
    }
    distribute_sums<fused_lanes>(sum, lane);
    first.send(p, now, sum[0], second, sum[1]);
    first.update(p, now, sum[0]);
    second.update(p, now, sum[1]);
  }
};

}  // namespace cosmati
