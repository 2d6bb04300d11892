// The layers of each variant, their initial parameters, and prediction.
#include "nets/lenet5/model.h"

#include <algorithm>
#include <cmath>

#include "nets/layers.h"
#include "nets/lenet5/codes.h"
#include "nets/random.h"
#include "src/ops/names.h"

namespace cosmati::lenet5 {

namespace {

// The score of the rejection class "none of the ten" in the loss of the 1998 network: training pulls the
// distance of the correct unit below it.
constexpr double original_rubbish = 0.1;

}  // namespace

using nets::ActivationLayer;
using nets::ConvolutionLayer;
using nets::FullyConnectedLayer;
using nets::PoolingLayer;

char const* name_of(Variant variant) {
  switch (variant) {
    case Variant::modern: return "modern";
    case Variant::chapter: return "chapter";
    case Variant::lecun1998: break;
  }
  return "lecun1998";
}

Variant parse_variant(std::string const& name) {
  for (Variant variant : variants)
    if (name == name_of(variant)) return variant;
  throw Error(ErrorCode::bad_request,
              unknown_name("variant of LeNet-5", name, {"modern", "chapter", "lecun1998"}, "valid variants"));
}

Model::Model(Variant variant, int state_count) : variant_(variant) {
  make_network();  // declares the parameters
  parameters_.allocate(state_count);
}

nets::Network Model::make_network() {
  bool const modern = variant_ == Variant::modern, original = variant_ == Variant::lecun1998;
  auto const function = modern     ? ActivationFunction::relu
                        : original ? ActivationFunction::scaled_tanh
                                   : ActivationFunction::sigmoid;
  nets::Network network;
  auto const add = [&](auto layer) {
    network.layers.push_back(std::make_unique<decltype(layer)>(std::move(layer)));
  };
  auto const squash = [&] { add(ActivationLayer(function)); };
  auto const subsample = [&](char const* name, Index maps) {
    if (original) squash();
    add(PoolingLayer(modern ? PoolingMode::max : PoolingMode::average, 2));
    if (original)
      add(ConvolutionLayer(parameters_, name,
                           {.inputs = maps, .outputs = maps, .window = 1, .groups = maps}));
    squash();
  };
  add(ConvolutionLayer(parameters_, "c1", {.inputs = 1, .outputs = 6, .window = 5, .padding = 2}));
  subsample("s2", 6);
  add(ConvolutionLayer(parameters_, "c3",
                       {.inputs = 6,
                        .outputs = 16,
                        .window = 5,
                        .connected = original ? c3_connections() : std::vector<bool>()}));
  subsample("s4", 16);
  add(FullyConnectedLayer(parameters_, "c5", 16 * 5 * 5, 120));
  squash();
  add(FullyConnectedLayer(parameters_, "f6", 120, 84));
  squash();
  if (modern) {
    add(FullyConnectedLayer(parameters_, "output", 84, class_count));
    network.loss = std::make_unique<nets::SoftmaxLoss>();
  } else {
    auto const rubbish = original ? std::optional<double>(original_rubbish) : std::nullopt;
    network.loss =
        std::make_unique<nets::GaussianLoss>(parameters_, "output", 84, class_count, !original, rubbish);
  }
  return network;
}

double Model::initial_limit(nets::Parameter const& parameter) const {
  Shape const& shape = parameter.description.shape();
  Index const outputs = shape[0];
  double const inputs = static_cast<double>(shape.size()) / static_cast<double>(outputs);
  Index const window = shape.rank == 4 ? shape[2] * shape[3] : 1;
  switch (variant_) {
    case Variant::modern: return std::sqrt(6 / inputs);
    case Variant::chapter: return 4 * std::sqrt(6 / (inputs + static_cast<double>(outputs * window)));
    case Variant::lecun1998: break;
  }
  return 2.4 / inputs;
}

void Model::initialize(unsigned long long seed) {
  for (std::size_t i = 0; i < parameters_.list().size(); ++i) {
    nets::Parameter const& parameter = parameters_.list()[i];
    Shape const& shape = parameter.description.shape();
    float* const value = parameters_.value(static_cast<int>(i));
    if (shape.rank == 1) continue;  // biases start at zero
    nets::Random random(seed, 1000 + i);
    double const limit = initial_limit(parameter);
    auto const pairs = static_cast<Index>(parameter.connected.size());
    for (Index e = 0; e < shape.size(); ++e) {
      double const drawn = random.uniform();
      bool const seen =
          pairs == 0 || parameter.connected[static_cast<std::size_t>(e / (shape.size() / pairs))];
      if (seen) value[e] = static_cast<float>((2 * drawn - 1) * limit);
      if (!parameter.trainable)
        value[e] = code(static_cast<int>(e / shape[1]), e % shape[1]);
      else if (parameter.name.ends_with(".centres"))
        value[e] = static_cast<float>(drawn);  // within the range of the sigmoids before it
      else if (parameter.name[0] == 's')
        value[e] = 1;  // subsampling initially averages
    }
  }
}

std::unique_ptr<nets::Sequence> Model::sequence(nets::Context const& context, Index batch) {
  return std::make_unique<nets::Sequence>(parameters_, make_network(), context,
                                          nets::image_description(context, batch, 1, image_size, image_size));
}

nets::Assignment Model::assignment(Device const& device) {
  return {device, parameters_,
          [this](nets::Context const& context, Index batch) { return sequence(context, batch); }, statistics};
}

int best_class(float const* scores) {
  return static_cast<int>(std::max_element(scores, scores + class_count) - scores);
}

Evaluation evaluate(nets::Executor& executor, nets::Dataset const& data) {
  Evaluation result;
  result.confusion.assign(class_count, std::vector<Index>(class_count));
  auto const scores = executor.scores(data);
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
