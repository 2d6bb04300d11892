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
  make_layers();  // declares the parameters
  parameters_.allocate(state_count);
}

Model::Layers Model::make_layers() {
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

std::unique_ptr<nets::Sequence> Model::sequence(Device const& device, Index batch, bool training) {
  nets::Context const context{device, nets::preferred_format(device), training};
  auto parts = make_layers();
  return std::make_unique<nets::Sequence>(parameters_, std::move(parts.layers), std::move(parts.loss),
                                          context,
                                          nets::image_description(context, batch, 1, image_size, image_size));
}

namespace {

// Calls use(first, count, scores) for each batch of `data` in order.
template <class Use>
void for_each_batch(Model const& model, nets::Sequence& sequence, nets::Dataset const& data, Use use) {
  if (data.height() != image_size || data.width() != image_size)
    throw Error(ErrorCode::bad_file, data.folder + ": the images are " + std::to_string(data.height()) + "x" +
                                         std::to_string(data.width()) + "; LeNet-5 takes 28x28");
  std::vector<Index> order(static_cast<std::size_t>(data.count()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Index>(i);
  std::vector<float> scores(static_cast<std::size_t>(sequence.batch() * class_count));
  for (Index first = 0; first < data.count(); first += sequence.batch()) {
    nets::gather(data, order, first, model.statistics, sequence.input(), sequence.input_data());
    sequence.infer(scores.data());
    use(first, std::min(sequence.batch(), data.count() - first), scores.data());
  }
}

}  // namespace

std::vector<float> scores(Model& model, Device const& device, nets::Dataset const& data) {
  auto const sequence = model.sequence(device, std::min<Index>(256, data.count()), false);
  std::vector<float> all;
  for_each_batch(model, *sequence, data, [&](Index, Index count, float const* batch) {
    all.insert(all.end(), batch, batch + count * class_count);
  });
  return all;
}

Evaluation evaluate(Model& model, nets::Sequence& sequence, nets::Dataset const& data) {
  Evaluation result;
  result.confusion.assign(class_count, std::vector<Index>(class_count));
  Index right = 0;
  for_each_batch(model, sequence, data, [&](Index first, Index count, float const* batch) {
    for (Index i = 0; i < count; ++i) {
      float const* const row = batch + i * class_count;
      auto const best = static_cast<std::size_t>(std::max_element(row, row + class_count) - row);
      auto const label = static_cast<std::size_t>(data.labels[static_cast<std::size_t>(first + i)]);
      result.predictions.push_back(static_cast<int>(best));
      ++result.confusion[label][best];
      right += label == best;
    }
  });
  result.accuracy = static_cast<double>(right) / static_cast<double>(data.count());
  return result;
}

}  // namespace cosmati::lenet5
