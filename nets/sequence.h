// Layers in a row, prepared for one batch size, with the buffers between them.
#pragma once
#include <memory>
#include <vector>

#include "nets/layer.h"

namespace cosmati::nets {

// Layers and the loss that ends them; the layers hold numbers of parameters.
struct Network {
  std::vector<std::unique_ptr<Layer>> layers;
  std::unique_ptr<Loss> loss;
};

class Sequence {
 public:
  // `parameters` outlives the sequence. x: the batch of inputs.
  Sequence(Parameters const& parameters, Network network, Context const& context, TensorDescription const& x);

  // The buffer that holds the inputs of the next batch, described by input().
  float* input_data() { return buffers_.front().as<float>(); }
  TensorDescription const& input() const { return input_; }
  Index batch() const { return input_.extent(0); }

  // Scores (batch, classes) for the inputs in input_data().
  void infer(float* scores);
  // Mean loss of the inputs in input_data() against labels (batch), and its gradients.
  double loss_and_gradients(int const* labels, Gradients gradients);

 private:
  void forward();
  std::byte* workspace() { return workspace_.as<std::byte>(); }
  void* value(std::size_t layer) { return buffers_[value_buffer_[layer]].data(); }

  Parameters const& parameters_;
  Network network_;
  TensorDescription input_;
  std::vector<Tensor> buffers_;            // inputs, then what the layers write
  std::vector<std::size_t> value_buffer_;  // of layer i's input; the last entry is of the sequence's output
  Tensor gradient_[2];                     // of a layer's output and input, in turn
  Tensor workspace_;
};

}  // namespace cosmati::nets
