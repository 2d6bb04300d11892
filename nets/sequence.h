// Layers in order, prepared for one batch size, with their memory.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cosmati/ops/memory.h"
#include "cosmati/ops/queue.h"
#include "nets/layer.h"

namespace cosmati::nets {

// Layers and the final loss; the layers contain the numbers of their parameters.
struct Network {
  std::vector<std::unique_ptr<Layer>> layers;
  std::unique_ptr<Loss> loss;
};

// A queue and a side queue, whose work begins at a fork and is waited for at the join.
class Branch {
 public:
  Branch(Device const& device, Queue& main) : main_(main), side_(device), forked_(device), done_(device) {}
  Stream fork();  // later work of the side follows the work already submitted to the main queue
  void join();
  Queue& side() { return side_; }

 private:
  Queue& main_;
  Queue side_;
  Moment forked_, done_;
};

// Additional inputs of a pass in 16 bits: see Pass.
struct Narrow {
  std::byte const* factors = nullptr;
  float const* gradient_scale = nullptr;
};

class Sequence {
 public:
  // Plans everything; needs no device. `parameters` must outlive the sequence. x: the batch of inputs.
  Sequence(Parameters const& parameters, Network network, Context const& context, TensorDescription const& x);
  // Allocates the memory and prepares the operations, in parallel if the device has threads.
  void prepare();

  // Returns the device buffer for the inputs of the next batch, described by input().
  float* input_data() { return reinterpret_cast<float*>(at(value_[0])); }
  TensorDescription const& input() const { return input_; }
  Index batch() const { return input_.extent(0); }
  Index classes() const { return network_.loss->classes(); }

  // Computes scores (batch, classes) for the inputs in input_data(). Enqueued, like the following functions;
  // `values` and `gradients` are in device memory, in the layout of the parameters.
  void infer(float const* values, float* scores, Stream stream = nullptr, Narrow const& narrow = {});
  // Called when the gradients of all parameters starting at element `first` have been enqueued (on the side
  // queue of the branch); finally with 0.
  using Ready = std::function<void(Index first)>;
  // Computes the mean loss of the inputs in input_data() against labels (batch), to loss[0], and its
  // gradients. `branch`: that of the queue of `stream`, if the context requests one.
  void loss_and_gradients(float const* values, int const* labels, float* loss, float* gradients,
                          Stream stream = nullptr, Branch* branch = nullptr, Ready const& ready = {},
                          Narrow const& narrow = {});
  // Returns the values of `first` with which Ready is called, in order.
  std::vector<Index> gradient_starts() const;

  // Returns the network for one kernel that trains it; without layers if a layer or the loss cannot be part
  // of one.
  FusedNetwork compose() const;
  // Returns a table of the layers: what they compute, by which kernels, and where in the sequence's memory
  // they write.
  std::string explain() const;

 private:
  struct Block {
    std::size_t offset = 0, bytes = 0;
  };
  Block reserve(std::size_t bytes);
  std::byte* at(Block const& block) { return static_cast<std::byte*>(memory_.data()) + block.offset; }
  Pass pass(float const* values, float* gradients, Stream stream, Narrow const& narrow) {
    Place const main{stream, at(workspace_)};
    return {parameters_, values, gradients, main, main, narrow.factors, narrow.gradient_scale};
  }
  void forward(Pass const& pass);

  Parameters const& parameters_;
  Network network_;
  Context context_;
  TensorDescription input_;
  std::size_t memory_bytes_ = 0;
  std::vector<Block> value_;                    // of layer i's input; the last one is the output's
  std::vector<TensorDescription> description_;  // of these values
  std::vector<Block> saved_;                    // of layer i
  std::vector<Block> gradient_;                 // of the values; two alternate if there is no branch
  Block loss_scratch_, workspace_, side_workspace_;
  DeviceMemory memory_;
};

}  // namespace cosmati::nets
