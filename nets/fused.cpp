// Layers as parts of a network that one kernel trains (cosmati/ops/fused_training.h).
#include <cmath>
#include <optional>

#include "nets/layers.h"

namespace cosmati::nets {
namespace {

std::optional<FusedFunction> fused_function(ActivationFunction function) {
  switch (function) {
    case ActivationFunction::relu: return FusedFunction::relu;
    case ActivationFunction::sigmoid: return FusedFunction::sigmoid;
    case ActivationFunction::scaled_tanh: return FusedFunction::scaled_tanh;
    default: return {};
  }
}

bool add(FusedNetwork& network, FusedLayer layer, std::optional<ActivationFunction> function) {
  if (network.layers == max_fused_layers) return false;
  if (function) {
    auto const fused = fused_function(*function);
    if (!fused) return false;
    layer.function = *fused;
  }
  network.layer[network.layers++] = layer;
  return true;
}

FusedLayer* last(FusedNetwork& network) {
  return network.layers == 0 ? nullptr : &network.layer[network.layers - 1];
}

int extent(TensorDescription const& x, int d) {
  return d < x.shape().rank ? static_cast<int>(x.extent(d)) : 1;
}

}  // namespace

bool ConvolutionLayer::compose(FusedNetwork& network, Parameters const& parameters,
                               TensorDescription const& x) const {
  Parameter const& weight = parameters[weight_];
  if (groups_ != 1 || !weight.connected.empty()) return false;
  FusedLayer layer;
  layer.channels = extent(x, 1), layer.height = extent(x, 2), layer.width = extent(x, 3);
  layer.maps = static_cast<int>(weight.description.extent(0));
  layer.taps = static_cast<int>(weight.description.extent(2));
  layer.padding = static_cast<int>(padding_);
  layer.weight = static_cast<int>(weight.offset);
  layer.bias = static_cast<int>(parameters[bias_].offset);
  return add(network, layer, value_);
}

bool PoolingLayer::compose(FusedNetwork& network, Parameters const&, TensorDescription const&) const {
  FusedLayer* const before = last(network);
  bool const maximum = mode_ == PoolingMode::max;
  if (before == nullptr || !before->is_convolution() || before->pool != 1) return false;
  // The functions are monotonic, so they may follow the maximum.
  if (!maximum && before->function != FusedFunction::identity) return false;
  before->pool = static_cast<int>(window_);
  before->maximum = maximum;
  return true;
}

bool ActivationLayer::compose(FusedNetwork& network, Parameters const&, TensorDescription const&) const {
  FusedLayer* const before = last(network);
  auto const function = fused_function(function_);
  if (before == nullptr || !function || before->function != FusedFunction::identity) return false;
  before->function = *function;
  return true;
}

bool FullyConnectedLayer::compose(FusedNetwork& network, Parameters const& parameters,
                                  TensorDescription const& x) const {
  TensorDescription const& weight = parameters[weight_].description;
  FusedLayer layer;
  layer.channels = extent(x, 1), layer.height = extent(x, 2), layer.width = extent(x, 3);
  layer.maps = static_cast<int>(weight.extent(0));
  layer.weight = static_cast<int>(parameters[weight_].offset);
  layer.bias = static_cast<int>(parameters[bias_].offset);
  return layer.inputs() == weight.extent(1) && add(network, layer, value_);
}

bool GaussianLoss::compose(FusedNetwork& network, Parameters const& parameters,
                           TensorDescription const& x) const {
  Parameter const& centres = parameters[centres_];
  if (!centres.trainable || !std::isinf(rubbish_)) return false;
  FusedLayer layer;
  layer.channels = extent(x, 1);
  layer.maps = static_cast<int>(centres.description.extent(0));
  layer.weight = static_cast<int>(centres.offset);
  layer.gaussian = true;
  return add(network, layer, {});
}

}  // namespace cosmati::nets
