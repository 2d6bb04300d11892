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

#include "cosmati/ops/activation.h"
#include "nets/parameters.h"

namespace cosmati::nets {

// What a layer is prepared for.
struct Context {
  Device device;
  TensorFormat format = TensorFormat::nchw;  // of images between layers
  bool training = false;                     // backward() will be called
  bool gradient_of_input = true;             // and asked for dx
  bool fuse = false;                         // activations go into the products beside them
  bool branch = false;                       // gradients of parameters are computed beside those of images
  DataType factors = DataType::f32;          // or tf32: what f32 factors of products are cut to
  // The type of activations, their gradients, and weights as factors of products: f32, f16 or bf16. Weights
  // themselves, their gradients, biases and losses are f32.
  DataType type = DataType::f32;

  bool narrow() const { return type != DataType::f32; }
};

// The format in which host threads compute small images fastest: on the CPU the batch innermost, so that
// every loop vectorizes over it whatever the number of channels.
inline TensorFormat preferred_format(Device const& device) {
  return device.backend == Backend::cpu ? TensorFormat::chwn : TensorFormat::nchw;
}

// `tensor` as a factor of products.
inline TensorDescription factor(Context const& context, TensorDescription tensor) {
  if (tensor.type == DataType::f32) tensor.type = context.factors;
  return tensor;
}
// A weight as such a factor, as Pass::factor() finds it.
inline TensorDescription weight_factor(Context const& context, TensorDescription weight) {
  if (context.narrow()) weight.type = context.type;
  return factor(context, weight);
}

// Where operations are enqueued, and the scratch memory that they share there.
struct Place {
  Stream stream = nullptr;
  std::byte* workspace = nullptr;
};

// What one pass through a network works on: arrays in the memory of the device, laid out as the parameters
// are.
struct Pass {
  Parameters const& parameters;
  float const* values;
  float* gradients;  // of a training
  Place main;
  Place side;  // where a layer computes the gradients of its parameters, and a loss its number; may be `main`
  // Where layers compute in 16 bits: the trained values so, and what gradients are multiplied by (f32, of the
  // device; null: by nothing).
  std::byte const* factors = nullptr;
  float const* gradient_scale = nullptr;

  float const* value(int number) const { return values + parameters[number].offset; }
  float* gradient(int number) const { return gradients + parameters[number].offset; }
  void const* factor(int number) const {
    return factors == nullptr ? static_cast<void const*>(value(number))
                              : factors + 2 * parameters[number].offset;
  }
};

// What layers and losses share: planning their operations, preparing them, and the workspace that they need.
class Operations {
 public:
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // What has to be done before anything runs: slow, and independent of each other.
  std::vector<std::function<void()>> take_preparations() { return std::exchange(preparations_, {}); }
  // The chosen kernels, for people: "forward by mma", ...
  std::vector<std::string> const& choices() const { return choices_; }

 protected:
  // Plans now; `target` is there when the preparation has been done.
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
  // Plans for inputs as described; returns what the output is like.
  virtual TensorDescription plan(Context const& context, Parameters const& parameters,
                                 TensorDescription const& x) = 0;
  virtual void forward(Pass const& pass, void const* x, void* y) = 0;
  // Writes the gradients of the layer's parameters and, unless dx is null, of x. x is as forward() left it.
  virtual void backward(Pass const& pass, void const* x, void const* dy, void* dx) = 0;
  // Number of its first parameter; -1 if it has none. Layers add theirs in the order in which they stand.
  virtual int first_parameter() const { return -1; }
  // True if y may be x's own buffer (and then dx is dy's).
  virtual bool in_place() const { return false; }
  // The function, if the layer is nothing else.
  virtual std::optional<ActivationFunction> activation() const { return {}; }
  // True if y is made of the largest of x, so that a rising function before it is the same as behind it.
  virtual bool selects() const { return false; }
  // True if y can be function(y), and dx be multiplied by the derivative of the function that made x, without
  // another pass over memory: both before plan().
  virtual bool has_epilogue() const { return false; }
  void fuse_value(ActivationFunction function) { value_ = function; }
  void fuse_derivative(ActivationFunction function) { derivative_ = function; }
  // Bytes that forward() keeps for backward(), where the sequence says.
  virtual std::size_t saved_bytes() const { return 0; }
  void set_saved(std::byte* memory) { saved_ = memory; }

 protected:
  std::byte* saved_ = nullptr;
  std::optional<ActivationFunction> value_, derivative_;
};

// The last layer of a training: the mean loss over a batch and its gradient, and the scores whose largest is
// the answer.
class Loss : public Operations {
 public:
  virtual ~Loss() = default;
  virtual std::string name() const = 0;
  virtual Index classes() const = 0;  // after plan()
  virtual void plan(Context const& context, Parameters const& parameters, TensorDescription const& x) = 0;
  // Bytes that the loss works in, where the sequence says.
  virtual std::size_t scratch_bytes() const { return 0; }
  void set_scratch(std::byte* memory) { scratch_ = memory; }
  // scores (N, classes), f32, row-major: larger is likelier.
  virtual void scores(Pass const& pass, void const* x, float* scores) = 0;
  // Writes the mean loss to loss[0]; dx; and the gradients of the loss's own parameters. All pointers are of
  // the device.
  virtual void loss(Pass const& pass, void const* x, int const* labels, float* loss, void* dx) = 0;

 protected:
  std::byte* scratch_ = nullptr;
};

}  // namespace cosmati::nets
