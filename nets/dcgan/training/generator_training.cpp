// The generator's training problems, made from the architecture, and the order in which they run.
#include "nets/dcgan/training/generator_training.h"

#include <algorithm>
#include <string>

#include "cosmati/epilogue/parse.h"

namespace cosmati::dcgan {
namespace {

TensorDescription matrix(DataType type, Index rows, Index columns) {
  return describe(type, Shape(1, rows, columns));
}

constexpr double statistics_share = 0.1;  // weight of the last batch in the moving average

}  // namespace

GeneratorTraining::GeneratorTraining(Network& network, Architecture const& a, Index batch,
                                     Device const& device, Precision precision, bool training, Stream stream)
    : network_(network),
      bench_(device, precision, stream),
      projection_(network.variables.add("proj_w", {a.latent, a.features()})),
      projection_bias_(network.variables.add("proj_b", Shape(a.features()))) {
  DataType const type = precision.stored();
  Index const features = a.features();
  projected_ = images_of(DataType::f32, batch, a.channel(0), first_size);
  images_ = images_of(training ? type : DataType::f32, batch, a.channels.back(), a.image_size());
  layers_.resize(static_cast<std::size_t>(a.layers()));
  normalized_.reserve(layers_.size());  // references to elements must stay valid
  for (int i = 0; i < a.layers(); ++i) {
    std::string const name = "tconv" + std::to_string(i + 1);
    normalized_.emplace_back(network, "bn" + std::to_string(i), a.channel(i), 0.0);
    bool const last = i + 1 == a.layers();
    Layer& layer = layers_[static_cast<std::size_t>(i)];
    layer.filter =
        network.variables.add(name + "_w", {filter_size, filter_size, a.channel(i + 1), a.channel(i)});
    if (last) last_bias_ = network.variables.add(name + "_b", Shape(a.channel(i + 1)));
    layer.input = images_of(type, batch, a.channel(i), a.size(i));
    layer.output = last ? images_ : images_of(type, batch, a.channel(i + 1), a.size(i + 1));
    TensorDescription const before = i == 0 ? projected_ : layer.input;
    layer.normal = bench_.memory(before);
    layer.h = bench_.memory(layer.input);
    normalized_.back().prepare(bench_, network, before, layer.input, training, batch_);

    TensorDescription const filter = filter_of(a.channel(i), a.channel(i + 1), type);
    TensorDescription const h = precision.factor(layer.input);
    auto problem = halving(ConvolutionDirection::data, layer.output, precision.factor(filter), h);
    if (last)
      problem.epilogue = {epilogue::parse("tanh(acc + bias[k])", epilogue::convolution_indices),
                          {describe(DataType::f32, Shape(a.channel(i + 1)))},
                          {}};
    bench_.make(layer.forward, problem);
    if (training) {
      TensorDescription const output = precision.factor(layer.output);
      problem = halving(ConvolutionDirection::forward, output, precision.factor(filter), layer.input);
      bench_.make(layer.data, problem);
      bench_.make(layer.filters, halving(ConvolutionDirection::filter, output,
                                         filter_of(a.channel(i), a.channel(i + 1), DataType::f32), h));
    }
  }
  output_ = bench_.memory(images_);
  if (training) batch_ = network.statistics.zeros(device);

  GemmProblem project;
  project.a = precision.factor(matrix(DataType::f32, batch, a.latent));
  project.b = precision.factor(matrix(DataType::f32, a.latent, features));
  project.d = matrix(DataType::f32, batch, features);
  project.epilogue = {epilogue::parse("acc + bias[n]", epilogue::gemm_indices),
                      {describe(DataType::f32, Shape(features))},
                      {}};
  bench_.make(project_, project);
  if (training) {
    GemmProblem filter;
    filter.a = {project.a.type, project.a.layout.permuted(0, 2, 1)};
    filter.b = precision.factor(project.d);
    filter.d = matrix(DataType::f32, a.latent, features);
    bench_.make(project_filter_, filter);
    ReduceProblem sum;
    sum.x = describe(DataType::f32, Shape(batch, features));
    sum.y = describe(DataType::f32, Shape(1, features));
    bench_.make(project_bias_, sum);
    sum.x = images_;
    sum.y = images_of(DataType::f32, 1, a.channels.back(), 1);
    bench_.make(last_bias_sum_, sum);
    ElementwiseProblem undo;
    undo.x = undo.y = images_;
    undo.epilogue = {
        epilogue::parse("acc * (1 - y[n, c, h, w] * y[n, c, h, w])", elementwise_indices(4)), {images_}, {}};
    bench_.make(undo_tanh_, undo);
    TensorDescription const flat = network.statistics.flat();
    bench_.make(follow_, AddProblem{flat, flat, flat, 1 - statistics_share, statistics_share});
    Index largest = std::max(images_.bytes(), projected_.bytes());
    for (Layer const& layer : layers_) largest = std::max(largest, layer.input.bytes());
    for (DeviceMemory& memory : gradient_) memory = {device, static_cast<std::size_t>(largest)};
  }
  bench_.finish();
}

void GeneratorTraining::forward(void const* z) {
  void const* const project_bias[] = {network_.value(projection_bias_)};
  void const* const last_bias[] = {network_.value(last_bias_)};
  bench_.run(
      project_,
      {.a = z, .b = network_.value(projection_), .d = layers_[0].normal.data(), .operands = project_bias});
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer const& layer = layers_[i];
    bool const last = i + 1 == layers_.size();
    normalized_[i].forward(bench_, network_, layer.normal.data(), layer.h.data());
    ConvolutionProblem::Arguments arguments{.w = network_.factor(layer.filter, bench_.precision()),
                                            .dy = layer.h.data(),
                                            .dx = last ? output_.data() : layers_[i + 1].normal.data()};
    if (last) arguments.operands = last_bias;
    bench_.run(layer.forward, arguments);
  }
}

void GeneratorTraining::backward(void const* z, void const* dimages) {
  void const* const images[] = {output_.data()};
  // The gradients of a layer's result, and of its input h.
  void *const after = gradient_[0].data(), *const before = gradient_[1].data();
  bench_.run(undo_tanh_, {.x = dimages, .y = after, .operands = images});
  bench_.run(last_bias_sum_, {.x = after, .y = gradient(last_bias_)});
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Layer const& layer = layers_[i];
    bench_.run(layer.filters, {.x = after, .dy = layer.h.data(), .dw = gradient(layer.filter)});
    bench_.run(layer.data, {.x = after, .w = network_.factor(layer.filter, bench_.precision()), .y = before});
    normalized_[i].backward(bench_, network_, 0, layer.normal.data(), layer.h.data(), before, after);
  }
  bench_.run(project_filter_, {.a = z, .b = after, .d = gradient(projection_)});
  bench_.run(project_bias_, {.x = after, .y = gradient(projection_bias_)});
}

void GeneratorTraining::follow_statistics() {
  auto* const running = static_cast<float*>(network_.running.data());
  bench_.run(follow_, {.a = running, .b = batch_.data(), .y = running});
  if (network_.sums != nullptr && !network_.shares_statistics())
    network_.sums->sum(running, network_.running.bytes() / sizeof(float), network_.share, bench_.stream());
}

}  // namespace cosmati::dcgan
