// The layers of the networks.
#pragma once
#include <optional>
#include <string>

#include "cosmati/ops/activation.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/fully_connected.h"
#include "cosmati/ops/memory.h"
#include "cosmati/ops/softmax.h"
#include "nets/layer.h"

namespace cosmati::nets {

// The shape of a convolution layer; stride 1, square windows.
struct ConvolutionShape {
  Index inputs, outputs, window;
  Index padding = 0;
  Index groups = 1;
  // See Parameter; empty: every output is connected to every input of its group.
  std::vector<bool> connected = {};
};

// y[n, k, p, q] = bias[k] + sum over c, r, s of x[n, c, p + r - padding, q + s - padding] * weight[k, c, r,
// s].
class ConvolutionLayer final : public Layer {
 public:
  // Adds `name`.weight (outputs, inputs / groups, window, window) and `name`.bias (outputs).
  ConvolutionLayer(Parameters& parameters, std::string const& name, ConvolutionShape const& shape);
  std::string name() const override;
  TensorDescription plan(Context const& context, Parameters const& parameters,
                         TensorDescription const& x) override;
  void forward(Pass const& pass, void const* x, void* y) override;
  void backward(Pass const& pass, void const* x, void const* dy, void* dx) override;
  bool has_epilogue() const override { return true; }
  int first_parameter() const override { return weight_; }
  bool compose(FusedNetwork& network, Parameters const& parameters,
               TensorDescription const& x) const override;

 private:
  std::string name_;
  int weight_, bias_;
  Index padding_, groups_;
  Prepared<ConvolutionProblem> forward_, data_, filter_;
  void plan_mask(Context const& context, Parameter const& weight);
  DeviceMemory mask_;  // (outputs, inputs): 1 if connected, else 0; empty if all are
  Prepared<ElementwiseProblem> masked_;
};

// Non-overlapping pooling over square windows.
class PoolingLayer final : public Layer {
 public:
  PoolingLayer(PoolingMode mode, Index window) : mode_(mode), window_(window) {}
  bool selects() const override { return mode_ == PoolingMode::max; }
  std::size_t saved_bytes() const override {
    return indices_.present() ? static_cast<std::size_t>(indices_.bytes()) : 0;
  }
  std::string name() const override;
  TensorDescription plan(Context const& context, Parameters const& parameters,
                         TensorDescription const& x) override;
  void forward(Pass const& pass, void const* x, void* y) override;
  void backward(Pass const& pass, void const* x, void const* dy, void* dx) override;
  bool compose(FusedNetwork& network, Parameters const& parameters,
               TensorDescription const& x) const override;

 private:
  PoolingMode mode_;
  Index window_;
  TensorDescription indices_;  // u8: the position of each maximum in its window; saved for backward()
  Prepared<PoolingProblem> forward_, backward_;
};

// y = function(x), element by element.
class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(ActivationFunction function) : function_(function) {}
  std::string name() const override;
  TensorDescription plan(Context const& context, Parameters const& parameters,
                         TensorDescription const& x) override;
  void forward(Pass const& pass, void const* x, void* y) override;
  void backward(Pass const& pass, void const* x, void const* dy, void* dx) override;
  // relu's derivative follows from its result.
  bool in_place() const override { return function_ == ActivationFunction::relu; }
  std::optional<ActivationFunction> activation() const override { return function_; }
  bool compose(FusedNetwork& network, Parameters const& parameters,
               TensorDescription const& x) const override;

 private:
  ActivationFunction function_;
  Prepared<ActivationProblem> forward_, backward_;
};

// y[n, o] = bias[o] + sum over i of x[n, i] * weight[o, i]; an image is read as its elements in order (c, h,
// w).
class FullyConnectedLayer final : public Layer {
 public:
  // Adds `name`.weight (outputs, inputs) and `name`.bias (outputs).
  FullyConnectedLayer(Parameters& parameters, std::string const& name, Index inputs, Index outputs);
  std::string name() const override;
  TensorDescription plan(Context const& context, Parameters const& parameters,
                         TensorDescription const& x) override;
  void forward(Pass const& pass, void const* x, void* y) override;
  void backward(Pass const& pass, void const* x, void const* dy, void* dx) override;
  bool has_epilogue() const override { return true; }
  int first_parameter() const override { return weight_; }
  bool compose(FusedNetwork& network, Parameters const& parameters,
               TensorDescription const& x) const override;

 private:
  std::string name_;
  int weight_, bias_;
  Prepared<GemmProblem> forward_, data_, filter_;
  Prepared<ReduceProblem> bias_gradient_;
};

// Losses are computed in f32. Converts from and to the network's narrower type, in scratch memory of the
// loss; the backward direction also multiplies by Pass::gradient_scale.
class Widened {
 public:
  // Plans the conversion of x (N, features), if it is not f32.
  template <class Make>
  void plan(Context const& context, TensorDescription const& x, Make const& make);
  bool present() const { return x_.present(); }
  TensorDescription const& description(TensorDescription const& x) const { return present() ? x_ : x; }
  std::size_t bytes() const { return present() ? 2 * static_cast<std::size_t>(rounded()) : 0; }
  // x() returns x in f32, at the beginning of scratch, or x itself; dx() returns memory for its gradient, or
  // dx.
  void const* x(Pass const& pass, void const* x, std::byte* scratch) const;
  void* dx(void* dx, std::byte* scratch) const { return present() ? scratch + rounded() : dx; }
  void finish(Pass const& pass, void* dx, std::byte* scratch) const;

 private:
  Index rounded() const { return (x_.bytes() + 255) / 256 * 256; }
  TensorDescription x_;  // in f32
  Prepared<TransformProblem> widen_, narrow_;
  Prepared<ElementwiseProblem> scale_;
};

// Mean cross-entropy of softmax(x) and the labels.
class SoftmaxLoss final : public Loss {
 public:
  std::string name() const override;
  Index classes() const override { return classes_; }
  void plan(Context const& context, Parameters const& parameters, TensorDescription const& x) override;
  void scores(Pass const& pass, void const* x, float* scores) override;
  void loss(Pass const& pass, void const* x, int const* labels, float* loss, void* dx) override;
  std::size_t scratch_bytes() const override { return widened_.bytes(); }
  bool compose(FusedNetwork&, Parameters const&, TensorDescription const&) const override { return true; }

 private:
  Index classes_ = 0;
  Widened widened_;
  Prepared<TransformProblem> scores_;
  Prepared<CrossEntropyProblem> loss_, gradient_;
  // With a branch, the loss is summed concurrently with the gradient, for which other operations wait.
  bool apart_ = false;
};

// Gaussian units around one center per class (see RbfProblem); scores are the negative distances.
class GaussianLoss final : public Loss {
 public:
  // Adds `name`.centres (classes, inputs), trained or fixed. rubbish: see RbfProblem.
  GaussianLoss(Parameters& parameters, std::string const& name, Index inputs, Index classes, bool trainable,
               std::optional<double> rubbish = {});
  std::string name() const override;
  Index classes() const override { return classes_; }
  void plan(Context const& context, Parameters const& parameters, TensorDescription const& x) override;
  void scores(Pass const& pass, void const* x, float* scores) override;
  void loss(Pass const& pass, void const* x, int const* labels, float* loss, void* dx) override;
  std::size_t scratch_bytes() const override { return widened_.bytes(); }
  bool compose(FusedNetwork& network, Parameters const& parameters,
               TensorDescription const& x) const override;

 private:
  int centres_;
  Widened widened_;
  Prepared<ElementwiseProblem> scale_centres_;  // multiplies their gradient by Pass::gradient_scale
  Index classes_;
  double rubbish_;
  Prepared<RbfProblem> distances_, loss_, backward_;
  Prepared<AddProblem> negate_;
};

// Whether the function and its derivative can be fused into a product's epilogue: the derivative must follow
// from the value.
bool can_fuse(ActivationFunction function);

// The layout of the images between layers, and of the vectors (n, f) that they become without moving an
// element.
TensorDescription image_description(Context const& context, Index n, Index c, Index h, Index w);
TensorDescription vector_description(Context const& context, Index n, Index features);

}  // namespace cosmati::nets
