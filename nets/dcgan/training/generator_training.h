// The generator without folded batch normalization: forward over a batch of latent vectors, and backward.
#pragma once
#include <vector>

#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/gemm.h"
#include "nets/dcgan/architecture.h"
#include "nets/dcgan/training/normalized.h"

namespace cosmati::dcgan {

// nets/dcgan/generator.h describes the network. Biases before a batch normalization, which cancels them, are
// omitted, except for that of the projection, which has one per position. Variables are named and laid out as
// in network.bin (weights.h).
class GeneratorTraining {
 public:
  // Adds to `network`, which must outlive the generator and is allocated before it runs. Images are f32
  // without `training`, otherwise as stored by `precision`; backward() requires `training`.
  GeneratorTraining(Network& network, Architecture const& architecture, Index batch, Device const& device,
                    Precision precision, bool training, Stream stream);

  // z: (batch, latent), f32, device memory.
  void forward(void const* z);
  TensorDescription const& images_description() const { return images_; }
  void* images() const { return output_.data(); }  // (batch, c, h, w), channels last, in [-1, 1]
  DeviceMemory const& image_memory() const { return output_; }
  // Computes the gradients of the variables, in network.gradient[0], from the gradient of the images.
  void backward(void const* z, void const* dimages);
  // network.running = 0.9 running + 0.1 batch; if devices have statistics of their own, the mean over
  // devices.
  void follow_statistics();

 private:
  struct Layer {  // h -> transposed convolution -> next
    int filter;
    TensorDescription input;   // h
    TensorDescription output;  // output of the transposed convolution
    DeviceMemory normal, h;    // before and after the normalization that computes h
    Prepared<ConvolutionProblem> forward, data, filters;
  };
  void* gradient(int number) const { return network_.variables.in(network_.gradient[0], number); }

  Network& network_;
  Workbench bench_;
  int projection_, projection_bias_, last_bias_;
  TensorDescription images_, projected_;
  std::vector<Normalized> normalized_;  // [i] computes layers_[i].h
  std::vector<Layer> layers_;
  DeviceMemory output_;
  DeviceMemory batch_;        // statistics of the last batch
  DeviceMemory gradient_[2];  // double buffer: alternately gradients of layer outputs and inputs
  Prepared<GemmProblem> project_, project_filter_;
  Prepared<ReduceProblem> project_bias_, last_bias_sum_;
  Prepared<ElementwiseProblem> undo_tanh_;
  Prepared<AddProblem> follow_;
};

}  // namespace cosmati::dcgan
