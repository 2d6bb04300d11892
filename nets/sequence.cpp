// Forward through the layers, backward from the loss.
#include "nets/sequence.h"

#include <utility>

namespace cosmati::nets {

Sequence::Sequence(Parameters& parameters, std::vector<std::unique_ptr<Layer>> layers,
                   std::unique_ptr<Loss> loss, Context const& context, TensorDescription const& x)
    : parameters_(parameters), layers_(std::move(layers)), loss_(std::move(loss)), input_(x) {
  buffers_.emplace_back(x);
  value_buffer_.push_back(0);
  TensorDescription current = x;
  std::size_t workspace_bytes = 64;
  Index largest = 0;
  for (auto const& layer : layers_) {
    current = layer->prepare(context, parameters, current);
    if (!layer->in_place()) buffers_.emplace_back(current);
    value_buffer_.push_back(buffers_.size() - 1);
    workspace_bytes = std::max(workspace_bytes, layer->workspace_bytes());
    largest = std::max(largest, current.layout.span());
  }
  loss_->prepare(context, parameters, current);
  workspace_bytes = std::max(workspace_bytes, loss_->workspace_bytes());
  workspace_ = Tensor(DataType::u8, Shape(static_cast<Index>(workspace_bytes)));
  if (context.training)
    for (Tensor& gradient : gradient_) gradient = Tensor(DataType::f32, Shape(largest));
}

void Sequence::forward() {
  for (std::size_t i = 0; i < layers_.size(); ++i)
    layers_[i]->forward(parameters_, value(i), value(i + 1), workspace());
}

void Sequence::infer(float* scores) {
  forward();
  loss_->scores(parameters_, value(layers_.size()), scores, workspace());
}

double Sequence::loss_and_gradients(int const* labels) {
  forward();
  float* dy = gradient_[0].as<float>();
  float* dx = gradient_[1].as<float>();
  double const loss = loss_->loss(parameters_, value(layers_.size()), labels, dy, workspace());
  for (std::size_t i = layers_.size(); i-- > 0;) {
    bool const in_place = layers_[i]->in_place();
    void* const target = i == 0 ? nullptr : in_place ? dy : dx;
    layers_[i]->backward(parameters_, value(i), value(i + 1), dy, target, workspace());
    if (!in_place) std::swap(dy, dx);
  }
  return loss;
}

}  // namespace cosmati::nets
