// The discriminator, which classifies images as real or generated.
//   64x64x3 -> 32x32x64 -> 16x16x128 -> 8x8x256 -> 4x4x512 -> one number, each by a 5x5 convolution of stride
//   2 (padding 1 before, 2 after: the generator's layers reversed), the last fully connected; leaky ReLU of
//   slope 0.2 after each, batch normalization before it in all but the first.
// Its loss is the binary cross-entropy of sigmoid(number) and a target of 1 (data) or 0: Goodfellow et al.
// 2014. The networks are those of Radford, Metz and Chintala 2016.
#pragma once
#include <vector>

#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/gemm.h"
#include "nets/dcgan/architecture.h"
#include "nets/dcgan/training/normalized.h"

namespace cosmati::dcgan {

class Discriminator {
 public:
  // Adds to `network`, which outlives the discriminator and is allocated before it runs. Discriminators of
  // one network share its variables; each has the activations and statistics of its own batch.
  Discriminator(Network& network, Architecture const& architecture, Index batch, Device const& device,
                Precision precision, Stream stream);

  // images: (batch, c, h, w), channels last, in the type given by `precision`, in device memory.
  void forward(void const* images);
  // Adds the mean over the batch of max(x, 0) - x target + log(1 + exp(-|x|)) to loss[0], f32, device memory.
  // Its gradient is kept for the functions below.
  void loss(double target, void* loss);
  // Computes the gradients of the variables into network.gradient[which]; `images` as passed to forward().
  void backward(void const* images, int which);
  // Returns the gradient of the images with the variables held constant, from which the generator learns.
  void const* image_gradient();
  // network.gradient[0] += network.gradient[1]
  void add_gradients();

 private:
  struct Layer {  // x -> convolution -> next
    int filter;
    TensorDescription output;  // of the convolution
    DeviceMemory normal, h;    // before the normalization (absent in the first layer), after the activation
    Prepared<ConvolutionProblem> forward, data, filters;
  };
  // With images and which, computes gradients of the variables; otherwise returns that of the images.
  void const* back(void const* images, int which);
  void* gradient(int which, int number) const {
    return network_.variables.in(network_.gradient[which], number);
  }

  Network& network_;
  Workbench bench_;
  int first_bias_, weight_, bias_;
  std::vector<Normalized> normalized_;  // [i] follows layers_[i + 1]
  std::vector<Layer> layers_;
  DeviceMemory logits_, dlogits_, terms_, mean_;
  DeviceMemory batch_;        // statistics of the last batch
  DeviceMemory gradient_[2];  // double buffer: alternately gradients of layer outputs and inputs
  Prepared<GemmProblem> answer_, answer_data_, answer_filter_;
  Prepared<ReduceProblem> answer_bias_, average_;
  Prepared<ElementwiseProblem> cross_entropy_;
  Prepared<ActivationProblem> first_deactivate_;
  Prepared<AddProblem> add_loss_, add_gradients_;
};

}  // namespace cosmati::dcgan
