// The layers of each variant, their initial weights, and prediction.
#include "nets/lenet5/model.h"

#include <algorithm>
#include <cmath>

#include "nets/layers.h"
#include "nets/random.h"

namespace cosmati::lenet5 {

using nets::ActivationLayer;
using nets::ConvolutionLayer;
using nets::FullyConnectedLayer;
using nets::PoolingLayer;

char const* name_of(Variant variant) { return variant == Variant::modern ? "modern" : "chapter"; }

Variant parse_variant(std::string const& name) {
  for (Variant variant : {Variant::modern, Variant::chapter})
    if (name == name_of(variant)) return variant;
  throw Error(ErrorCode::bad_request,
              "'" + name + "' is not a variant of LeNet-5; there is: modern, chapter");
}

Model::Model(Variant variant, int state_count) : variant_(variant) {
  make_network();  // declares the parameters
  parameters_.allocate(state_count);
}

nets::Network Model::make_network() {
  bool const modern = variant_ == Variant::modern;
  PoolingMode const mode = modern ? PoolingMode::max : PoolingMode::average;
  ActivationFunction const function = modern ? ActivationFunction::relu : ActivationFunction::sigmoid;
  std::vector<std::unique_ptr<nets::Layer>> layers;
  auto const add = [&](auto layer) { layers.push_back(std::make_unique<decltype(layer)>(std::move(layer))); };
  add(ConvolutionLayer(parameters_, "c1", 1, 6, 5, 2));
  add(PoolingLayer(mode, 2));
  add(ActivationLayer(function));
  add(ConvolutionLayer(parameters_, "c3", 6, 16, 5, 0));
  add(PoolingLayer(mode, 2));
  add(ActivationLayer(function));
  add(FullyConnectedLayer(parameters_, "c5", 16 * 5 * 5, 120));
  add(ActivationLayer(function));
  add(FullyConnectedLayer(parameters_, "f6", 120, 84));
  add(ActivationLayer(function));
  if (!modern)
    return {std::move(layers), std::make_unique<nets::GaussianLoss>(parameters_, "output", 84, 10, true)};
  add(FullyConnectedLayer(parameters_, "output", 84, class_count));
  return {std::move(layers), std::make_unique<nets::SoftmaxLoss>()};
}

void Model::initialise(unsigned long long seed) {
  // Variance of what a unit sums kept from layer to layer: 2/inputs before a ReLU (He et al. 2015); a
  // sigmoid's slope of at most 1/4 asks for four times the deviation of Glorot and Bengio (2010). Biases
  // start at zero.
  for (std::size_t i = 0; i < parameters_.list().size(); ++i) {
    nets::Parameter const& parameter = parameters_.list()[i];
    Shape const& shape = parameter.description.shape();
    nets::Random random(seed, 1000 + i);
    float* const value = parameters_.value(static_cast<int>(i));
    Index const outputs = shape[0], inputs = shape.size() / std::max(outputs, Index{1});
    Index const window = shape.rank == 4 ? shape[2] * shape[3] : 1;
    double limit = 0;
    if (shape.rank > 1)
      limit = variant_ == Variant::modern
                  ? std::sqrt(6.0 / static_cast<double>(inputs))
                  : 4 * std::sqrt(6.0 / static_cast<double>(inputs + outputs * window));
    bool const centres = parameter.name.ends_with(".centres");
    for (Index e = 0; e < shape.size(); ++e)
      value[e] = static_cast<float>(centres ? random.uniform(0, 1) : random.uniform(-limit, limit));
  }
}

nets::Replicas Model::replicas(Device const& on, bool training) {
  auto const make = [this](Device const& device, Index batch, bool with_gradients) {
    nets::Context const context{device, nets::preferred_format(device), with_gradients};
    return std::make_unique<nets::Sequence>(
        parameters_, make_network(), context,
        nets::image_description(context, batch, 1, image_size, image_size));
  };
  return {make, on, parameters_.trainable().extent(0), training};
}

int best_class(float const* scores) {
  return static_cast<int>(std::max_element(scores, scores + class_count) - scores);
}

Evaluation evaluate(Model const& model, nets::Replicas& replicas, nets::Dataset const& data) {
  Evaluation result;
  result.confusion.assign(class_count, std::vector<Index>(class_count));
  auto const scores = replicas.scores(data, model.statistics, class_count);
  Index right = 0;
  for (std::size_t i = 0; i < data.labels.size(); ++i) {
    int const best = best_class(&scores[i * class_count]), label = data.labels[i];
    result.predictions.push_back(best);
    ++result.confusion[static_cast<std::size_t>(label)][static_cast<std::size_t>(best)];
    right += label == best;
  }
  result.accuracy = static_cast<double>(right) / static_cast<double>(data.count());
  return result;
}

}  // namespace cosmati::lenet5
