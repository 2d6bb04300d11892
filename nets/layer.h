// A layer of a network: operations prepared for one batch size, over parameters that live elsewhere.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "cosmati/ops/operation.h"
#include "nets/parameters.h"

namespace cosmati::nets {

// What a layer is prepared for.
struct Context {
  Device device;
  TensorFormat format = TensorFormat::nchw;  // of images between layers
  bool training = false;                     // backward() will be called
};

// The format in which a device computes small images fastest: on the CPU the batch innermost, so that every
// loop vectorises over it whatever the number of channels.
inline TensorFormat preferred_format(Device const& device) {
  return device.backend == Backend::cpu ? TensorFormat::chwn : TensorFormat::nchw;
}

// What layers and losses share: planning and preparing their operations, and the workspace that they need.
class Operations {
 public:
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 protected:
  template <class Problem>
  Prepared<Problem> make(Problem const& problem, Device const& device) {
    auto prepared = cosmati::prepare(make_plan(problem, device));
    workspace_bytes_ = std::max(workspace_bytes_, prepared.workspace_bytes());
    return prepared;
  }

 private:
  std::size_t workspace_bytes_ = 0;
};

// y = f(x; parameters). forward() and backward() compute on the buffers that the sequence owns.
class Layer : public Operations {
 public:
  virtual ~Layer() = default;
  // Plans and prepares for inputs as described; returns what the output is like.
  virtual TensorDescription prepare(Context const& context, Parameters const& parameters,
                                    TensorDescription const& x) = 0;
  virtual void forward(Parameters const& parameters, void const* x, void* y, std::byte* workspace) = 0;
  // Writes the gradients of the layer's parameters and, unless dx is null, of x. x is as forward() left it.
  virtual void backward(Parameters const& parameters, Gradients gradients, void const* x, void const* dy,
                        void* dx, std::byte* workspace) = 0;
  // True if y may be x's own buffer (and then dx is dy's).
  virtual bool in_place() const { return false; }
};

// The last layer of a training: the mean loss over a batch and its gradient, and the scores whose largest is
// the answer.
class Loss : public Operations {
 public:
  virtual ~Loss() = default;
  virtual void prepare(Context const& context, Parameters const& parameters, TensorDescription const& x) = 0;
  // scores (N, classes), f32, row-major: larger is likelier.
  virtual void scores(Parameters const& parameters, void const* x, float* scores, std::byte* workspace) = 0;
  // Returns the mean loss; writes dx and the gradients of the loss's own parameters.
  virtual double loss(Parameters const& parameters, Gradients gradients, void const* x, int const* labels,
                      void* dx, std::byte* workspace) = 0;
};

}  // namespace cosmati::nets
