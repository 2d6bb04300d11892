// Convolution, pooling and activation layers: makes problems from shapes and runs operations on buffers.
#include "nets/layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "cosmati/epilogue/parse.h"

namespace cosmati::nets {
namespace {

// acc + bias[k] or acc + bias[n], with the layer's f32 bias.
Epilogue add_bias(std::string_view text, std::span<std::string_view const> indices,
                  TensorDescription const& bias) {
  return {epilogue::parse(text, indices), {bias}, {}};
}

// function(argument) in the epilogue language.
std::string value_text(std::optional<ActivationFunction> function, std::string const& argument) {
  if (!function) return argument;
  if (*function == ActivationFunction::scaled_tanh)
    return fmt::format("{:.17g} * tanh({:.17g} * ({}))", default_alpha(*function), default_beta(*function),
                       argument);
  return std::string(name_of(*function)) + "(" + argument + ")";
}

// acc times the derivative of the function whose value is `x`.
std::string derivative_text(ActivationFunction function, std::string const& x) {
  if (function == ActivationFunction::relu) return fmt::format("select({} > 0, acc, 0)", x);
  if (function == ActivationFunction::sigmoid) return fmt::format("acc * {0} * (1 - {0})", x);
  double const alpha = default_alpha(function), beta = default_beta(function);  // parameters of scaled_tanh
  return fmt::format("acc * {0:.17g} * ({1:.17g} - {2} * {2} / {1:.17g})", beta, alpha, x);
}

std::string with_function(std::string name, std::optional<ActivationFunction> function) {
  return function ? name + ", " + name_of(*function) : name;
}

}  // namespace

bool can_fuse(ActivationFunction function) {
  return function == ActivationFunction::relu || function == ActivationFunction::sigmoid ||
         function == ActivationFunction::scaled_tanh;
}

TensorDescription image_description(Context const& context, Index n, Index c, Index h, Index w) {
  return describe(context.type, image_layout(context.format, n, c, h, w));
}

TensorDescription vector_description(Context const& context, Index n, Index features) {
  Shape const shape(n, features);
  return describe(context.type,
                  context.format == TensorFormat::chwn ? column_major(shape) : row_major(shape));
}

ConvolutionLayer::ConvolutionLayer(Parameters& parameters, std::string const& name,
                                   ConvolutionShape const& shape)
    : name_(name),
      weight_(parameters.add(name + ".weight",
                             {shape.outputs, shape.inputs / shape.groups, shape.window, shape.window}, true,
                             shape.connected)),
      bias_(parameters.add(name + ".bias", {shape.outputs})),
      padding_(shape.padding),
      groups_(shape.groups) {}

std::string ConvolutionLayer::name() const { return with_function(name_ + " convolution", value_); }

TensorDescription ConvolutionLayer::plan(Context const& context, Parameters const& parameters,
                                         TensorDescription const& x) {
  ConvolutionProblem problem;
  problem.x = factor(context, x);
  problem.w = weight_factor(context, parameters[weight_].description);
  problem.groups = groups_;
  for (int d : {0, 1}) problem.pad_begin[d] = problem.pad_end[d] = padding_;
  auto const extent = [&](int d) {
    return convolution_extent(x.extent(d), problem.w.extent(d), 1, padding_, padding_, 1);
  };
  auto const y = image_description(context, x.extent(0), problem.w.extent(0), extent(2), extent(3));
  problem.y = y;
  problem.epilogue = add_bias(value_text(value_, "acc + bias[k]"), epilogue::convolution_indices,
                              parameters[bias_].description);
  make(forward_, "forward", problem, context.device);
  if (context.training) {
    problem.epilogue = {};
    problem.y = factor(context, y);
    problem.x = x;
    problem.direction = ConvolutionDirection::data;
    if (derivative_)
      problem.epilogue = {
          epilogue::parse(derivative_text(*derivative_, "x[n, k, p, q]"), epilogue::convolution_indices),
          {x},
          {}};
    if (context.gradient_of_input) make(data_, "data", problem, context.device);
    problem.epilogue = {};
    problem.x = factor(context, x);
    problem.w = parameters[weight_].description;
    problem.direction = ConvolutionDirection::filter;
    problem.db = parameters[bias_].description;
    make(filter_, "filter", problem, context.device);
    plan_mask(context, parameters[weight_]);
  }
  return y;
}

// Masks the gradients of weights that are not connected.
void ConvolutionLayer::plan_mask(Context const& context, Parameter const& weight) {
  if (weight.connected.empty()) return;
  std::vector<float> const mask(weight.connected.begin(), weight.connected.end());
  mask_ = DeviceMemory(context.device, mask.size() * sizeof(float));
  mask_.upload(mask.data(), mask_.bytes());
  constexpr std::string_view letters[] = {"n", "c", "h", "w"};
  ElementwiseProblem problem;
  problem.x = problem.y = weight.description;
  problem.epilogue = {
      epilogue::parse("select(connected[n, c] > 0, acc, 0)", letters),
      {describe(DataType::f32, Shape(weight.description.extent(0), weight.description.extent(1)))},
      {}};
  make(masked_, "mask", problem, context.device);
}

void ConvolutionLayer::forward(Pass const& pass, void const* x, void* y) {
  void const* const operands[] = {pass.value(bias_)};
  forward_.run({.x = x, .w = pass.factor(weight_), .y = y, .operands = operands}, pass.main.workspace,
               pass.main.stream);
}

void ConvolutionLayer::backward(Pass const& pass, void const* x, void const* dy, void* dx) {
  float* const dw = pass.gradient(weight_);
  filter_.run({.x = x, .dy = dy, .dw = dw, .db = pass.gradient(bias_)}, pass.side.workspace,
              pass.side.stream);
  if (mask_.bytes() > 0) {
    void const* const operands[] = {mask_.data()};
    masked_.run({.x = dw, .y = dw, .operands = operands}, pass.side.workspace, pass.side.stream);
  }
  if (dx == nullptr) return;
  void const* const operands[] = {x};
  data_.run({.w = pass.factor(weight_),
             .dy = dy,
             .dx = dx,
             .operands = std::span(operands, derivative_.has_value())},
            pass.main.workspace, pass.main.stream);
}

std::string PoolingLayer::name() const { return std::string("pooling, ") + name_of(mode_); }

TensorDescription PoolingLayer::plan(Context const& context, Parameters const&, TensorDescription const& x) {
  PoolingProblem problem;
  problem.mode = mode_;
  problem.x = x;
  for (int d : {0, 1}) problem.window[d] = problem.stride[d] = window_;
  problem.y =
      image_description(context, x.extent(0), x.extent(1), x.extent(2) / window_, x.extent(3) / window_);
  if (context.training && mode_ == PoolingMode::max)
    problem.indices = indices_ = {DataType::u8, problem.y.layout};
  make(forward_, "forward", problem, context.device);
  if (context.training) {
    problem.direction = Direction::backward;
    make(backward_, "backward", problem, context.device);
  }
  return problem.y;
}

void PoolingLayer::forward(Pass const& pass, void const* x, void* y) {
  forward_.run({.x = x, .y = y, .indices = saved_}, pass.main.workspace, pass.main.stream);
}

void PoolingLayer::backward(Pass const& pass, void const* x, void const* dy, void* dx) {
  backward_.run({.x = x, .dy = dy, .saved_indices = saved_, .dx = dx}, pass.main.workspace, pass.main.stream);
}

std::string ActivationLayer::name() const { return name_of(function_); }

TensorDescription ActivationLayer::plan(Context const& context, Parameters const&,
                                        TensorDescription const& x) {
  ActivationProblem problem;
  problem.function = function_;
  problem.alpha = default_alpha(function_);
  problem.beta = default_beta(function_);
  problem.x = problem.y = problem.dx = x;
  make(forward_, "forward", problem, context.device);
  if (context.training) {
    problem.direction = Direction::backward;
    make(backward_, "backward", problem, context.device);
  }
  return x;
}

void ActivationLayer::forward(Pass const& pass, void const* x, void* y) {
  forward_.run({.x = x, .y = y}, pass.main.workspace, pass.main.stream);
}

void ActivationLayer::backward(Pass const& pass, void const* x, void const* dy, void* dx) {
  backward_.run({.x = x, .dy = dy, .dx = dx}, pass.main.workspace, pass.main.stream);
}

FullyConnectedLayer::FullyConnectedLayer(Parameters& parameters, std::string const& name, Index inputs,
                                         Index outputs)
    : name_(name),
      weight_(parameters.add(name + ".weight", {outputs, inputs})),
      bias_(parameters.add(name + ".bias", {outputs})) {}

std::string FullyConnectedLayer::name() const { return with_function(name_ + " fully connected", value_); }

TensorDescription FullyConnectedLayer::plan(Context const& context, Parameters const& parameters,
                                            TensorDescription const& x) {
  TensorDescription const& weight = parameters[weight_].description;
  TensorDescription const& bias = parameters[bias_].description;
  TensorDescription const flat = vector_description(context, x.extent(0), weight.extent(1));
  TensorDescription const y = vector_description(context, x.extent(0), weight.extent(0));
  auto const cut = [&](TensorDescription const& tensor) { return factor(context, tensor); };
  TensorDescription const as_factor = weight_factor(context, weight);
  make(forward_, "forward",
       fully_connected_forward(cut(flat), as_factor, y,
                               add_bias(value_text(value_, "acc + bias[n]"), epilogue::gemm_indices, bias)),
       context.device);
  if (context.training) {
    GemmProblem data = fully_connected_data(cut(y), as_factor, flat);
    if (derivative_)
      data.epilogue = {
          epilogue::parse(derivative_text(*derivative_, "x[m, n]"), epilogue::gemm_indices), {flat}, {}};
    if (context.gradient_of_input) make(data_, "data", data, context.device);
    make(filter_, "filter", fully_connected_filter(cut(y), cut(flat), weight), context.device);
    ReduceProblem sum;
    sum.x = y;
    sum.y = describe(DataType::f32, Shape(1, weight.extent(0)));
    make(bias_gradient_, "bias", sum, context.device);
  }
  return y;
}

void FullyConnectedLayer::forward(Pass const& pass, void const* x, void* y) {
  void const* const operands[] = {pass.value(bias_)};
  forward_.run({.a = x, .b = pass.factor(weight_), .d = y, .operands = operands}, pass.main.workspace,
               pass.main.stream);
}

void FullyConnectedLayer::backward(Pass const& pass, void const* x, void const* dy, void* dx) {
  filter_.run({.a = dy, .b = x, .d = pass.gradient(weight_)}, pass.side.workspace, pass.side.stream);
  bias_gradient_.run({.x = dy, .y = pass.gradient(bias_)}, pass.side.workspace, pass.side.stream);
  if (dx == nullptr) return;
  void const* const operands[] = {x};
  data_.run(
      {.a = dy, .b = pass.factor(weight_), .d = dx, .operands = std::span(operands, derivative_.has_value())},
      pass.main.workspace, pass.main.stream);
}

}  // namespace cosmati::nets
