// A layer of a network: operations prepared for one batch size, over parameters that live elsewhere.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cosmati/network/shape.h"
#include "cosmati/ops/activation.h"
#include "nets/parameters.h"

namespace cosmati::nets {

// The device and settings for which a layer is prepared.
struct Context {
  Device device;
  TensorFormat format = TensorFormat::nchw;  // of images between layers
  bool training = false;                     // backward() will be called
  bool gradient_of_input = true;             // backward() also computes dx
  bool fuse = false;                         // activations are fused into adjacent products
  // Gradients of parameters are computed concurrently with those of images.
  bool branch = false;
  DataType factors = DataType::f32;  // or tf32: the rounding of f32 factors of products
  // The type of activations, their gradients, and weights as factors of products: f32, f16 or bf16. The
  // weights themselves, their gradients, biases and losses are f32.
  DataType type = DataType::f32;

  bool narrow() const { return type != DataType::f32; }
};

// The format in which host threads compute small images fastest: on the CPU the batch is contiguous, so that
// every loop vectorizes over it for any number of channels.
inline TensorFormat preferred_format(Device const& device) {
  return device.backend == Backend::cpu ? TensorFormat::chwn : TensorFormat::nchw;
}

// Returns `tensor` as a factor of products.
inline TensorDescription factor(Context const& context, TensorDescription tensor) {
  if (tensor.type == DataType::f32) tensor.type = context.factors;
  return tensor;
}
// Returns a weight as such a factor, as provided by Pass::factor().
inline TensorDescription weight_factor(Context const& context, TensorDescription weight) {
  if (context.narrow()) weight.type = context.type;
  return factor(context, weight);
}

// Where operations are enqueued, and the scratch memory that they share there.
struct Place {
  Stream stream = nullptr;
  std::byte* workspace = nullptr;
};

// The arrays of one pass through a network, in device memory, in the layout of the parameters.
struct Pass {
  Parameters const& parameters;
  float const* values;
  float* gradients;  // if training
  Place main;
  Place side;  // for the gradients of parameters and the loss value; may be `main`
  // If layers compute in 16 bits: the trained values in 16 bits, and the factor of gradients (f32, in device
  // memory; null: none).
  std::byte const* factors = nullptr;
  float const* gradient_scale = nullptr;

  float const* value(int number) const { return values + parameters[number].offset; }
  float* gradient(int number) const { return gradients + parameters[number].offset; }
  void const* factor(int number) const {
    return factors == nullptr ? static_cast<void const*>(value(number))
                              : factors + 2 * parameters[number].offset;
  }
};

// The common base of layers and losses: planning and preparing their operations, and the workspace that they
// need.
class Operations {
 public:
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Returns the tasks that must be done before anything runs: slow, and independent of each other.
  std::vector<std::function<void()>> take_preparations() { return std::exchange(preparations_, {}); }
  // The chosen kernels as text: "forward by mma", ...
  std::vector<std::string> const& choices() const { return choices_; }

 protected:
  // Plans immediately; `target` is valid after the preparation.
  template <class Problem>
  void make(Prepared<Problem>& target, char const* what, Problem const& problem, Device const& device) {
    auto plan = make_plan(problem, device);
    workspace_bytes_ = std::max(workspace_bytes_, plan.workspace_bytes);
    choices_.push_back(std::string(what) + " by " + plan.kernel);
    preparations_.push_back([&target, plan = std::move(plan)] { target = cosmati::prepare(plan); });
  }

 private:
  std::size_t workspace_bytes_ = 0;
  std::vector<std::function<void()>> preparations_;
  std::vector<std::string> choices_;
};

// y = f(x; parameters). forward() and backward() enqueue work on the buffers that the sequence owns.
class Layer : public Operations {
 public:
  virtual ~Layer() = default;
  virtual std::string name() const = 0;
  // Plans for inputs with this description; returns that of the output.
  virtual TensorDescription plan(Context const& context, Parameters const& parameters,
                                 TensorDescription const& x) = 0;
  virtual void forward(Pass const& pass, void const* x, void* y) = 0;
  // Writes the gradients of the layer's parameters and, unless dx is null, of x. x is unchanged since
  // forward().
  virtual void backward(Pass const& pass, void const* x, void const* dy, void* dx) = 0;
  // Returns the number of its first parameter; -1 if it has none. Layers add their parameters in network
  // order.
  virtual int first_parameter() const { return -1; }
  // True if y may be x's own buffer (and then dx is dy's).
  virtual bool in_place() const { return false; }
  // The activation function, if the layer is only that.
  virtual std::optional<ActivationFunction> activation() const { return {}; }
  // True if y consists of maxima of x, so that a monotonic function before the layer is equivalent to one
  // after it.
  virtual bool selects() const { return false; }
  // True if the layer can apply `function` to y, and multiply dx by the derivative of the function that
  // computed x, without another pass over memory; both are set before plan().
  virtual bool has_epilogue() const { return false; }
  void fuse_value(ActivationFunction function) { value_ = function; }
  void fuse_derivative(ActivationFunction function) { derivative_ = function; }
  // Adds the layer with this input to a network that one kernel trains; returns false if it cannot be part of
  // one.
  virtual bool compose([[maybe_unused]] FusedNetwork& network, [[maybe_unused]] Parameters const& parameters,
                       [[maybe_unused]] TensorDescription const& x) const {
    return false;
  }
  // Returns the bytes that forward() keeps for backward(), in memory provided by the sequence.
  virtual std::size_t saved_bytes() const { return 0; }
  void set_saved(std::byte* memory) { saved_ = memory; }

 protected:
  std::byte* saved_ = nullptr;
  std::optional<ActivationFunction> value_, derivative_;
};

// The last layer of a training: the mean loss over a batch and its gradient, and the scores whose maximum is
// the prediction.
class Loss : public Operations {
 public:
  virtual ~Loss() = default;
  virtual std::string name() const = 0;
  virtual Index classes() const = 0;  // after plan()
  virtual void plan(Context const& context, Parameters const& parameters, TensorDescription const& x) = 0;
  // Adds what computes the scores from x, beyond a softmax's cross-entropy, to a network that one kernel
  // trains; returns false if it cannot be part of one.
  virtual bool compose([[maybe_unused]] FusedNetwork& network, [[maybe_unused]] Parameters const& parameters,
                       [[maybe_unused]] TensorDescription const& x) const {
    return false;
  }
  // Returns the bytes of scratch memory of the loss, provided by the sequence.
  virtual std::size_t scratch_bytes() const { return 0; }
  void set_scratch(std::byte* memory) { scratch_ = memory; }
  // scores (N, classes), f32, row-major: higher is more likely.
  virtual void scores(Pass const& pass, void const* x, float* scores) = 0;
  // Writes the mean loss to loss[0], dx, and the gradients of the loss's own parameters. All pointers are
  // device pointers.
  virtual void loss(Pass const& pass, void const* x, int const* labels, float* loss, void* dx) = 0;

 protected:
  std::byte* scratch_ = nullptr;
};

}  // namespace cosmati::nets
