// Convolution, pooling and activation layers: problems made from shapes, operations run on buffers.
#include "nets/layers.h"

#include <algorithm>

#include "cosmati/epilogue/parse.h"

namespace cosmati::nets {
namespace {

// acc + bias[k] or acc + bias[n], with the layer's f32 bias.
Epilogue add_bias(std::string_view text, std::span<std::string_view const> indices,
                  TensorDescription const& bias) {
  return {epilogue::parse(text, indices), {bias}, {}};
}

}  // namespace

TensorDescription image_description(Context const& context, Index n, Index c, Index h, Index w) {
  return describe(DataType::f32, image_layout(context.format, n, c, h, w));
}

TensorDescription vector_description(Context const& context, Index n, Index features) {
  Shape const shape(n, features);
  return describe(DataType::f32,
                  context.format == TensorFormat::chwn ? column_major(shape) : row_major(shape));
}

ConvolutionLayer::ConvolutionLayer(Parameters& parameters, std::string const& name,
                                   ConvolutionShape const& shape)
    : weight_(parameters.add(name + ".weight",
                             {shape.outputs, shape.inputs / shape.groups, shape.window, shape.window}, true,
                             shape.connected)),
      bias_(parameters.add(name + ".bias", {shape.outputs})),
      padding_(shape.padding),
      groups_(shape.groups) {}

TensorDescription ConvolutionLayer::prepare(Context const& context, Parameters const& parameters,
                                            TensorDescription const& x) {
  ConvolutionProblem problem;
  problem.x = x;
  problem.w = parameters[weight_].description;
  problem.groups = groups_;
  for (int d : {0, 1}) problem.pad_begin[d] = problem.pad_end[d] = padding_;
  auto const extent = [&](int d) {
    return convolution_extent(x.extent(d), problem.w.extent(d), 1, padding_, padding_, 1);
  };
  problem.y = image_description(context, x.extent(0), problem.w.extent(0), extent(2), extent(3));
  problem.epilogue = add_bias("acc + bias[k]", epilogue::convolution_indices, parameters[bias_].description);
  forward_ = make(problem, context.device);
  if (context.training) {
    problem.epilogue = {};
    problem.direction = ConvolutionDirection::data;
    data_ = make(problem, context.device);
    problem.direction = ConvolutionDirection::filter;
    problem.db = parameters[bias_].description;
    filter_ = make(problem, context.device);
  }
  return problem.y;
}

void ConvolutionLayer::forward(Parameters const& parameters, void const* x, void* y, std::byte* workspace) {
  void const* const operands[] = {parameters.value(bias_)};
  forward_.run({.x = x, .w = parameters.value(weight_), .y = y, .operands = operands}, workspace);
}

void ConvolutionLayer::backward(Parameters const& parameters, Gradients gradients, void const* x,
                                void const* dy, void* dx, std::byte* workspace) {
  filter_.run(
      {.x = x, .dy = dy, .dw = gradients.of(parameters[weight_]), .db = gradients.of(parameters[bias_])},
      workspace);
  Parameter const& weight = parameters[weight_];
  Index const window = weight.description.extent(2) * weight.description.extent(3);
  for (std::size_t pair = 0; pair < weight.connected.size(); ++pair)
    if (!weight.connected[pair])
      std::fill_n(gradients.of(weight) + static_cast<Index>(pair) * window, window, 0.0F);
  if (dx != nullptr) data_.run({.w = parameters.value(weight_), .dy = dy, .dx = dx}, workspace);
}

TensorDescription PoolingLayer::prepare(Context const& context, Parameters const&,
                                        TensorDescription const& x) {
  PoolingProblem problem;
  problem.mode = mode_;
  problem.x = x;
  for (int d : {0, 1}) problem.window[d] = problem.stride[d] = window_;
  problem.y =
      image_description(context, x.extent(0), x.extent(1), x.extent(2) / window_, x.extent(3) / window_);
  if (context.training && mode_ == PoolingMode::max) {
    problem.indices = {DataType::u8, problem.y.layout};
    indices_ = Tensor(problem.indices);
  }
  forward_ = make(problem, context.device);
  if (context.training) {
    problem.direction = Direction::backward;
    backward_ = make(problem, context.device);
  }
  return problem.y;
}

void PoolingLayer::forward(Parameters const&, void const* x, void* y, std::byte* workspace) {
  forward_.run({.x = x, .y = y, .indices = indices_.data()}, workspace);
}

void PoolingLayer::backward(Parameters const&, Gradients, void const* x, void const* dy, void* dx,
                            std::byte* workspace) {
  backward_.run({.x = x, .dy = dy, .saved_indices = indices_.data(), .dx = dx}, workspace);
}

TensorDescription ActivationLayer::prepare(Context const& context, Parameters const&,
                                           TensorDescription const& x) {
  ActivationProblem problem;
  problem.function = function_;
  problem.alpha = default_alpha(function_);
  problem.beta = default_beta(function_);
  problem.x = problem.y = problem.dx = x;
  forward_ = make(problem, context.device);
  if (context.training) {
    problem.direction = Direction::backward;
    backward_ = make(problem, context.device);
  }
  return x;
}

void ActivationLayer::forward(Parameters const&, void const* x, void* y, std::byte* workspace) {
  forward_.run({.x = x, .y = y}, workspace);
}

void ActivationLayer::backward(Parameters const&, Gradients, void const* x, void const* dy, void* dx,
                               std::byte* workspace) {
  backward_.run({.x = x, .dy = dy, .dx = dx}, workspace);
}

FullyConnectedLayer::FullyConnectedLayer(Parameters& parameters, std::string const& name, Index inputs,
                                         Index outputs)
    : weight_(parameters.add(name + ".weight", {outputs, inputs})),
      bias_(parameters.add(name + ".bias", {outputs})) {}

TensorDescription FullyConnectedLayer::prepare(Context const& context, Parameters const& parameters,
                                               TensorDescription const& x) {
  TensorDescription const& weight = parameters[weight_].description;
  TensorDescription const& bias = parameters[bias_].description;
  TensorDescription const flat = vector_description(context, x.extent(0), weight.extent(1));
  TensorDescription const y = vector_description(context, x.extent(0), weight.extent(0));
  forward_ =
      make(fully_connected_forward(flat, weight, y, add_bias("acc + bias[n]", epilogue::gemm_indices, bias)),
           context.device);
  if (context.training) {
    data_ = make(fully_connected_data(y, weight, flat), context.device);
    filter_ = make(fully_connected_filter(y, flat, weight), context.device);
    ReduceProblem sum;
    sum.x = y;
    sum.y = describe(DataType::f32, Shape(1, weight.extent(0)));
    bias_gradient_ = make(sum, context.device);
  }
  return y;
}

void FullyConnectedLayer::forward(Parameters const& parameters, void const* x, void* y,
                                  std::byte* workspace) {
  void const* const operands[] = {parameters.value(bias_)};
  forward_.run({.a = x, .b = parameters.value(weight_), .d = y, .operands = operands}, workspace);
}

void FullyConnectedLayer::backward(Parameters const& parameters, Gradients gradients, void const* x,
                                   void const* dy, void* dx, std::byte* workspace) {
  filter_.run({.a = dy, .b = x, .d = gradients.of(parameters[weight_])}, workspace);
  bias_gradient_.run({.x = dy, .y = gradients.of(parameters[bias_])}, workspace);
  if (dx != nullptr) data_.run({.a = dy, .b = parameters.value(weight_), .d = dx}, workspace);
}

}  // namespace cosmati::nets
