// The discriminator's problems, made from the architecture, and the order in which they run.
#include "nets/dcgan/training/discriminator.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/fully_connected.h"

namespace cosmati::dcgan {
namespace {

constexpr double leaky_slope = 0.2;

// The epilogue that computes the gradient before leaky_relu from the one after it, acc; h, the activation's
// value, has the sign of its argument. `at`: those of the `indices` that h has.
Epilogue activation_gradient(TensorDescription const& h, std::string const& at,
                             std::span<std::string_view const> indices) {
  return {
      epilogue::parse(fmt::format("select(h[{}] > 0, acc, {} * acc)", at, leaky_slope), indices), {h}, {}};
}

}  // namespace

Discriminator::Discriminator(Network& network, Architecture const& a, Index batch, Device const& device,
                             Precision precision, Stream stream)
    : network_(network), bench_(device, precision, stream) {
  DataType const type = precision.stored();
  int const count = a.layers();
  Index const features = a.features();
  TensorDescription x = images_of(type, batch, a.channels.back(), a.image_size());
  Index largest = x.bytes();
  layers_.resize(static_cast<std::size_t>(count));
  normalized_.reserve(layers_.size());  // references to elements must stay valid
  for (int i = 0; i < count; ++i) {
    std::string const number = std::to_string(i + 1);
    Index const inputs = a.channel(count - i), outputs = a.channel(count - i - 1);
    bool const first = i == 0, last = i + 1 == count;
    Layer& layer = layers_[static_cast<std::size_t>(i)];
    layer.filter = network.variables.add("conv" + number + "_w", {filter_size, filter_size, inputs, outputs});
    if (first) first_bias_ = network.variables.add("conv1_b", Shape(outputs));
    layer.output = images_of(type, batch, outputs, a.size(count - i - 1));
    // The fully connected layer reads f32.
    TensorDescription const h{last ? DataType::f32 : type, layer.output.layout};
    layer.h = bench_.memory(h);
    if (!first) {
      layer.normal = bench_.memory(layer.output);
      normalized_.emplace_back(network, "bn" + number, outputs, leaky_slope);
      normalized_.back().prepare(bench_, network, layer.output, h, true, batch_);
    }
    TensorDescription const image = precision.factor(x), dy = precision.factor(layer.output);
    TensorDescription const filter = precision.factor(filter_of(outputs, inputs, type));
    auto problem = halving(ConvolutionDirection::forward, image, filter, layer.output);
    if (first)
      problem.epilogue = {epilogue::parse("leaky_relu(acc + bias[k], 0.2)", epilogue::convolution_indices),
                          {describe(DataType::f32, Shape(outputs))},
                          {}};
    bench_.make(layer.forward, problem);
    problem = halving(ConvolutionDirection::data, x, filter, dy);
    if (i == 1 && bench_.fuses())  // the first layer has no batch normalization, which would include it
      problem.epilogue = activation_gradient(x, "n, k, p, q", epilogue::convolution_indices);
    bench_.make(layer.data, problem);
    problem = halving(ConvolutionDirection::filter, image, filter_of(outputs, inputs, DataType::f32), dy);
    if (first) problem.db = describe(DataType::f32, Shape(outputs));
    bench_.make(layer.filters, problem);
    largest = std::max({largest, h.bytes(), layer.output.bytes()});
    x = h;
  }
  ActivationProblem activation;
  activation.direction = Direction::backward;
  activation.function = ActivationFunction::leaky_relu;
  activation.alpha = leaky_slope;
  activation.x = activation.y = activation.dx = layers_[0].output;
  if (!bench_.fuses()) bench_.make(first_deactivate_, activation);

  weight_ = network.variables.add("out_w", {1, features});
  bias_ = network.variables.add("out_b", Shape(1));
  auto const matrix = [](Index rows, Index columns) { return describe(DataType::f32, Shape(rows, columns)); };
  TensorDescription const flat = matrix(batch, features), answer = matrix(batch, 1), w = matrix(1, features);
  TensorDescription const one = describe(DataType::f32, Shape(1)),
                          all = describe(DataType::f32, Shape(batch));
  bench_.make(answer_,
              fully_connected_forward(flat, w, answer,
                                      {epilogue::parse("acc + bias[n]", epilogue::gemm_indices), {one}, {}}));
  GemmProblem data = fully_connected_data(answer, w, flat);
  if (count == 1 && bench_.fuses()) data.epilogue = activation_gradient(flat, "m, n", epilogue::gemm_indices);
  bench_.make(answer_data_, data);
  bench_.make(answer_filter_, fully_connected_filter(answer, flat, w));
  ReduceProblem sum;
  sum.x = all;
  sum.y = one;
  bench_.make(answer_bias_, sum);
  sum.operation = ReduceOperation::mean;
  bench_.make(average_, sum);
  ElementwiseProblem loss;
  loss.x = loss.y = all;
  loss.epilogue = {epilogue::parse("store(gradient, (sigmoid(acc) - target) * share); "
                                   "max(acc, 0) - acc * target + log(1 + exp(-abs(acc)))",
                                   elementwise_indices(1)),
                   {},
                   {all}};
  bench_.make(cross_entropy_, loss);
  bench_.make(add_loss_, AddProblem{one, one, one, 1, 1});
  TensorDescription const variables = network.variables.flat();
  bench_.make(add_gradients_, AddProblem{variables, variables, variables, 1, 1});
  for (DeviceMemory* memory : {&logits_, &dlogits_, &terms_}) *memory = bench_.memory(all);
  mean_ = bench_.memory(one);
  batch_ = network.statistics.zeros(device);
  for (DeviceMemory& memory : gradient_) memory = {device, static_cast<std::size_t>(largest)};
  bench_.finish();
}

void Discriminator::forward(void const* images) {
  void const* const first_bias[] = {network_.value(first_bias_)};
  void const* x = images;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer const& layer = layers_[i];
    ConvolutionProblem::Arguments arguments{.x = x,
                                            .w = network_.factor(layer.filter, bench_.precision()),
                                            .y = i == 0 ? layer.h.data() : layer.normal.data()};
    if (i == 0) arguments.operands = first_bias;
    bench_.run(layer.forward, arguments);
    if (i > 0) normalized_[i - 1].forward(bench_, network_, layer.normal.data(), layer.h.data());
    x = layer.h.data();
  }
  void const* const bias[] = {network_.value(bias_)};
  bench_.run(answer_, {.a = x, .b = network_.value(weight_), .d = logits_.data(), .operands = bias});
}

void Discriminator::loss(double target, void* loss) {
  double scalars[2];  // in the order in which the expression names them
  auto const& problem = cross_entropy_.plan().problem;
  auto const& names = problem.epilogue.expression.scalars();
  for (std::size_t i = 0; i < names.size(); ++i)
    scalars[i] =
        names[i].name == "target" ? target : network_.share / static_cast<double>(problem.x.extent(0));
  void* const stores[] = {dlogits_.data()};
  bench_.run(cross_entropy_, {.x = logits_.data(), .y = terms_.data(), .scalars = scalars, .stores = stores});
  bench_.run(average_, {.x = terms_.data(), .y = mean_.data()});
  bench_.run(add_loss_, {.a = loss, .b = mean_.data(), .y = loss});
}

void const* Discriminator::back(void const* images, int which) {
  bool const learning = images != nullptr;
  // The gradients of a layer's result h (that of the first, if the bench fuses, before its activation), and
  // of its convolution.
  void *after = gradient_[0].data(), *before = gradient_[1].data();
  void const* const h[] = {layers_[0].h.data()};
  // Operands of the operation that computes the gradient of the result of layer i.
  auto const operands_for = [&](std::size_t i) {
    return std::span<void const* const>(h, i == 0 && bench_.fuses() ? 1 : 0);
  };
  bench_.run(answer_data_, {.a = dlogits_.data(),
                            .b = network_.value(weight_),
                            .d = after,
                            .operands = operands_for(layers_.size() - 1)});
  if (learning) {
    bench_.run(answer_filter_,
               {.a = dlogits_.data(), .b = layers_.back().h.data(), .d = gradient(which, weight_)});
    bench_.run(answer_bias_, {.x = dlogits_.data(), .y = gradient(which, bias_)});
  }
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Layer const& layer = layers_[i];
    if (i > 0)
      normalized_[i - 1].backward(bench_, network_, which, layer.normal.data(), layer.h.data(), after,
                                  before);
    else if (bench_.fuses())
      std::swap(after, before);
    else
      bench_.run(first_deactivate_, {.x = layer.h.data(), .dy = after, .dx = before});
    if (learning)
      bench_.run(layer.filters, {.x = i == 0 ? images : layers_[i - 1].h.data(),
                                 .dy = before,
                                 .dw = gradient(which, layer.filter),
                                 .db = i == 0 ? gradient(which, first_bias_) : nullptr});
    if (i == 0 && learning) break;
    bench_.run(layer.data, {.w = network_.factor(layer.filter, bench_.precision()),
                            .dy = before,
                            .dx = after,
                            .operands = i > 0 ? operands_for(i - 1) : std::span<void const* const>()});
  }
  return after;
}

void Discriminator::backward(void const* images, int which) { back(images, which); }

void const* Discriminator::image_gradient() { return back(nullptr, 1); }

void Discriminator::add_gradients() {
  void* const sum = network_.gradient[0].data();
  bench_.run(add_gradients_, {.a = sum, .b = network_.gradient[1].data(), .y = sum});
}

}  // namespace cosmati::dcgan
