// Folds batch normalization into the preceding filters and biases, in f64.
#include <cmath>
#include <string>

#include "nets/dcgan/layer.h"

namespace cosmati::dcgan {
namespace {

// y = scale * x + shift for each channel: batch normalization with stored statistics.
struct Affine {
  std::vector<double> scale, shift;
};

Affine batch_norm(Weights const& weights, int number) {
  std::string const name = "bn" + std::to_string(number);
  auto const &beta = weights[name + "_beta"], &gamma = weights[name + "_gamma"];
  auto const &mean = weights[name + "_mean"], &variance = weights[name + "_var"];
  Affine result;
  for (std::size_t c = 0; c < beta.size(); ++c) {
    double const scale =
        static_cast<double>(gamma[c]) / std::sqrt(static_cast<double>(variance[c]) + batch_norm_epsilon);
    result.scale.push_back(scale);
    result.shift.push_back(static_cast<double>(beta[c]) - scale * static_cast<double>(mean[c]));
  }
  return result;
}

Affine identity() {
  return {std::vector<double>(image_channels, 1.0), std::vector<double>(image_channels, 0.0)};
}

Layout filter_layout(Index inputs, Index outputs) {  // (c, k, r, s), stored as (r, s, k, c)
  return row_major({filter_size, filter_size, outputs, inputs}).permuted(3, 2, 0, 1);
}

}  // namespace

FoldedWeights::FoldedWeights(Weights const& weights) : architecture(weights.architecture()) {
  auto const &proj_w = weights["proj_w"], &proj_b = weights["proj_b"];
  Index const projected = static_cast<Index>(proj_b.size());
  projection = Tensor(DataType::f32, {latent_size, projected});
  projection_bias = Tensor(DataType::f32, Shape(projected));
  Affine const first = batch_norm(weights, 0);
  for (Index j = 0; j < projected; ++j) {
    auto const c = static_cast<std::size_t>(j % architecture.channel(0)),
               column = static_cast<std::size_t>(j);
    projection_bias.set(j, first.scale[c] * static_cast<double>(proj_b[column]) + first.shift[c]);
    for (Index i = 0; i < latent_size; ++i) {
      auto const at = static_cast<std::size_t>(i * projected + j);
      projection.as<float>()[at] = static_cast<float>(first.scale[c] * static_cast<double>(proj_w[at]));
    }
  }
  for (int i = 0; i < layer_count; ++i) {
    std::string const name = "tconv" + std::to_string(i + 1);
    auto const &w = weights[name + "_w"], &b = weights[name + "_b"];
    Affine const next = i + 1 < layer_count ? batch_norm(weights, i + 1) : identity();
    Index const inputs = architecture.channel(i), outputs = architecture.channel(i + 1);
    filter[i] = Tensor(describe(DataType::f32, filter_layout(inputs, outputs)));
    bias[i] = Tensor(DataType::f32, Shape(outputs));
    for (std::size_t at = 0; at < w.size(); ++at) {
      std::size_t const k = at / static_cast<std::size_t>(inputs) % static_cast<std::size_t>(outputs);
      filter[i].as<float>()[at] = static_cast<float>(next.scale[k] * static_cast<double>(w[at]));
    }
    for (std::size_t k = 0; k < b.size(); ++k)
      bias[i].as<float>()[k] = static_cast<float>(next.scale[k] * static_cast<double>(b[k]) + next.shift[k]);
  }
}

}  // namespace cosmati::dcgan
