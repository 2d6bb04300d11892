// Folding, planning and running the generator's five layers.
#include "nets/dcgan/generator.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "cosmati/epilogue/parse.h"
#include "nets/random.h"

namespace cosmati::dcgan {
namespace {

// y = scale * x + shift, for each channel: batch normalisation with stored statistics.
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
  return {std::vector<double>(channels[layer_count], 1.0), std::vector<double>(channels[layer_count], 0.0)};
}

Layout filter_layout(Index inputs, Index outputs) {  // (c, k, r, s), stored as (r, s, k, c)
  return row_major({filter_size, filter_size, outputs, inputs}).permuted(3, 2, 0, 1);
}

TensorDescription image_description(Index batch, int layer) {
  Index const size = first_size << layer;
  return describe(DataType::f32, image_layout(TensorFormat::nhwc, batch, channels[layer], size, size));
}

Epilogue with_bias(std::string_view text, std::span<std::string_view const> indices, Tensor const& bias) {
  return {epilogue::parse(text, indices), {bias.description()}, {}};
}

}  // namespace

FoldedWeights::FoldedWeights(Weights const& weights) {
  auto const &proj_w = weights["proj_w"], &proj_b = weights["proj_b"];
  Index const projected = static_cast<Index>(proj_b.size());
  projection = Tensor(DataType::f32, {latent_size, projected});
  projection_bias = Tensor(DataType::f32, Shape(projected));
  Affine const first = batch_norm(weights, 0);
  for (Index j = 0; j < projected; ++j) {
    auto const c = static_cast<std::size_t>(j % channels[0]), column = static_cast<std::size_t>(j);
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
    Index const inputs = channels[i], outputs = channels[i + 1];
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

Generator::Generator(FoldedWeights const& weights, Device const& device, Index batch)
    : weights_(weights), batch_(batch) {
  std::size_t workspace_bytes = 64;
  auto const make = [&](auto const& problem) {
    auto prepared = prepare(make_plan(problem, device));
    workspace_bytes = std::max(workspace_bytes, prepared.workspace_bytes());
    return prepared;
  };
  Index const projected = weights.projection_bias.size();
  GemmProblem projection;
  projection.a = describe(DataType::f32, Shape(1, batch, latent_size));
  projection.b = describe(DataType::f32, Shape(1, latent_size, projected));
  projection.d = describe(DataType::f32, Shape(1, batch, projected));
  projection.epilogue = with_bias("relu(acc + bias[n])", epilogue::gemm_indices, weights.projection_bias);
  projection_ = make(projection);
  for (int i = 0; i < layer_count; ++i) {
    activation_[i] = Tensor(image_description(batch, i));
    ConvolutionProblem problem;
    problem.direction = ConvolutionDirection::data;
    problem.y = activation_[i].description();
    problem.w = weights.filter[i].description();
    problem.x = image_description(batch, i + 1);
    for (int d : {0, 1}) {
      problem.stride[d] = 2;
      problem.pad_begin[d] = 1;
      problem.pad_end[d] = 2;
    }
    problem.epilogue = with_bias(i + 1 < layer_count ? "relu(acc + bias[k])" : "tanh(acc + bias[k])",
                                 epilogue::convolution_indices, weights.bias[i]);
    layer_[i] = make(problem);
  }
  workspace_ = Tensor(DataType::u8, Shape(static_cast<Index>(workspace_bytes)));
}

void Generator::run(float const* z, float* images) {
  void const* const projection_bias[] = {weights_.projection_bias.data()};
  projection_.run(
      {.a = z, .b = weights_.projection.data(), .d = activation_[0].data(), .operands = projection_bias},
      workspace_.data());
  for (int i = 0; i < layer_count; ++i) {
    void const* const bias[] = {weights_.bias[i].data()};
    void* const out = i + 1 < layer_count ? activation_[i + 1].data() : images;
    layer_[i].run({.w = weights_.filter[i].data(), .dy = activation_[i].data(), .dx = out, .operands = bias},
                  workspace_.data());
  }
}

std::vector<float> generate(FoldedWeights const& weights, Device const& device, std::vector<float> const& z,
                            Index largest_batch) {
  Index const count = static_cast<Index>(z.size()) / latent_size;
  std::vector<float> images(static_cast<std::size_t>(count * image_elements));
  std::unique_ptr<Generator> generator;
  for (Index first = 0; first < count;) {
    Index const batch = std::min(largest_batch, count - first);
    if (!generator || generator->batch() != batch)
      generator = std::make_unique<Generator>(weights, device, batch);
    generator->run(z.data() + first * latent_size, images.data() + first * image_elements);
    first += batch;
  }
  return images;
}

std::vector<float> random_latents(Index count, unsigned long long seed) {
  nets::Random random(seed, 0);
  std::vector<float> z(static_cast<std::size_t>(count * latent_size));
  for (float& value : z) value = static_cast<float>(random.uniform(-1, 1));
  return z;
}

}  // namespace cosmati::dcgan
