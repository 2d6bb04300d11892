// Forward through the layers, backward from the loss.
#include "nets/sequence.h"

#include <utility>

namespace cosmati::nets {

Sequence::Sequence(Parameters const& parameters, Network network, Context const& context,
                   TensorDescription const& x)
    : parameters_(parameters), network_(std::move(network)), input_(x) {
  buffers_.emplace_back(x);
  value_buffer_.push_back(0);
  TensorDescription current = x;
  std::size_t workspace_bytes = 64;
  Index largest = 0;
  for (auto const& layer : network_.layers) {
    current = layer->prepare(context, parameters, current);
    if (!layer->in_place()) buffers_.emplace_back(current);
    value_buffer_.push_back(buffers_.size() - 1);
    workspace_bytes = std::max(workspace_bytes, layer->workspace_bytes());
    largest = std::max(largest, current.layout.span());
  }
  network_.loss->prepare(context, parameters, current);
  workspace_bytes = std::max(workspace_bytes, network_.loss->workspace_bytes());
  workspace_ = Tensor(DataType::u8, Shape(static_cast<Index>(workspace_bytes)));
  if (context.training)
    for (Tensor& gradient : gradient_) gradient = Tensor(DataType::f32, Shape(largest));
}

void Sequence::forward() {
  for (std::size_t i = 0; i < network_.layers.size(); ++i)
    network_.layers[i]->forward(parameters_, value(i), value(i + 1), workspace());
}

void Sequence::infer(float* scores) {
  forward();
  network_.loss->scores(parameters_, value(network_.layers.size()), scores, workspace());
}

double Sequence::loss_and_gradients(int const* labels, Gradients gradients) {
  forward();
  std::size_t const count = network_.layers.size();
  float* dy = gradient_[0].as<float>();
  float* dx = gradient_[1].as<float>();
  double const loss = network_.loss->loss(parameters_, gradients, value(count), labels, dy, workspace());
  for (std::size_t i = count; i-- > 0;) {
    Layer& layer = *network_.layers[i];
    void* const target = i == 0 ? nullptr : layer.in_place() ? dy : dx;
    layer.backward(parameters_, gradients, value(i), dy, target, workspace());
    if (!layer.in_place()) std::swap(dy, dx);
  }
  return loss;
}

}  // namespace cosmati::nets
