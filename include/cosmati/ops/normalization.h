// Batch normalization, layer, RMS and group normalization, and local response normalization.
#pragma once
#include "cosmati/ops/pooling.h"

namespace cosmati {

enum class BatchNormMode : unsigned char { inference, training, backward };

// x is (N, C, ...) of rank 2 to 5; mean and variance (population variance, divided by the count) are over all
// dimensions but c.
//   inference: y = f(z), z = (x - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + bias[c]
//   training:  the same with the batch's own mean and variance; writes them to saved_mean, saved_variance
//   backward:  from x, dy, scale and the saved statistics: dx, dscale, dbias. NaN: docs/nonfinite.md
// f is none if slope is 1, relu if it is 0, otherwise leaky_relu with alpha = slope. With an activation,
// backward also reads bias and computes z again; f'(z) is 1 where z > 0, NaN where z is NaN, and slope
// elsewhere. Where |z| is within its rounding error, f'(z) may be 1 or slope.
struct BatchNormProblem {
  BatchNormMode mode = BatchNormMode::inference;
  TensorDescription x;
  TensorDescription y;  // y, or dy
  TensorDescription dx;
  TensorDescription
      statistics;  // (C): the layout and type of scale, bias, mean, variance and their gradients
  double epsilon = 1e-5;
  double slope = 1;

  struct Arguments {
    void const* x = nullptr;
    void const* dy = nullptr;
    void const* scale = nullptr;
    void const* bias = nullptr;
    void const* mean = nullptr;
    void const* variance = nullptr;
    void* y = nullptr;
    void* saved_mean = nullptr;
    void* saved_variance = nullptr;
    void* dx = nullptr;
    void* dscale = nullptr;
    void* dbias = nullptr;
  };

  bool has_activation() const { return slope != 1; }
  // See ConvolutionProblem.
  char const* sums_over_batch() const {
    if (mode == BatchNormMode::training) return "the mean and variance of a batch normalization are sums";
    return mode == BatchNormMode::backward ? "the gradients of a batch normalization are sums" : nullptr;
  }

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("x", Role::input, problem.x, &Arguments::x);
    visit("scale", Role::input, problem.statistics, &Arguments::scale);
    switch (problem.mode) {
      case BatchNormMode::inference:
      case BatchNormMode::training: {
        bool const training = problem.mode == BatchNormMode::training;
        visit("bias", Role::input, problem.statistics, &Arguments::bias);
        if (!training) visit("mean", Role::input, problem.statistics, &Arguments::mean);
        if (!training) visit("variance", Role::input, problem.statistics, &Arguments::variance);
        visit("y", Role::output, problem.y, &Arguments::y);
        if (training) visit("saved_mean", Role::output, problem.statistics, &Arguments::saved_mean);
        if (training) visit("saved_variance", Role::output, problem.statistics, &Arguments::saved_variance);
        return;
      }
      case BatchNormMode::backward:
        visit("dy", Role::input, problem.y, &Arguments::dy);
        if (problem.has_activation()) visit("bias", Role::input, problem.statistics, &Arguments::bias);
        visit("mean", Role::input, problem.statistics, &Arguments::mean);
        visit("variance", Role::input, problem.statistics, &Arguments::variance);
        visit("dx", Role::output, problem.dx, &Arguments::dx);
        visit("dscale", Role::output, problem.statistics, &Arguments::dscale);
        visit("dbias", Role::output, problem.statistics, &Arguments::dbias);
        return;
    }
  }
};

enum class RowNormMode : unsigned char { layer, rms, group };

// Layer normalization and RMS normalization. The dimensions of x starting at `axis` are normalized together:
// they are a row of n elements, with one mean and one inverse for each index tuple of the dimensions before.
// Group normalization: x is (N, C, ...), and a row consists of C / groups adjacent channels of an image.
//   layer, group:
//             mean = sum of x / n, inverse = 1 / sqrt(sum of (x - mean)^2 / n + epsilon),
//             u = (x - mean) * inverse
//   rms:      inverse = 1 / sqrt(sum of x^2 / n + epsilon), u = x * inverse
//   forward:  y = u * weight + bias; writes saved_mean (not rms) and saved_inverse if `statistics` is present
//   backward: from x, dy, weight and the saved statistics, with g = dy * weight and means over the row:
//             dx = inverse * (g - mean of g - u * mean of g*u), rms without the mean of g;
//             dweight = sum of dy * u and dbias = sum of dy over all elements that share the parameter, in an
//             order fixed by the plan
// Absent weights are ones, an absent bias is zeros. NaN: docs/nonfinite.md
struct RowNormProblem {
  RowNormMode mode = RowNormMode::layer;
  Direction direction = Direction::forward;
  int axis = 1;      // not for group
  Index groups = 1;  // for group; divides C
  TensorDescription x;
  TensorDescription y;               // y, or dy
  TensorDescription dx;              // backward only
  TensorDescription weight;          // the shape of x starting at `axis`, or absent; group: (C)
  TensorDescription bias;            // like weight; forward only, not rms
  TensorDescription dweight, dbias;  // like weight; backward only
  // Mean and inverse: the shape of x with extents of 1 starting at `axis`; group: (N, groups).
  TensorDescription statistics;
  double epsilon = 1e-5;

  struct Arguments {
    void const* x = nullptr;
    void const* dy = nullptr;
    void const* weight = nullptr;
    void const* bias = nullptr;
    void const* mean = nullptr;
    void const* inverse = nullptr;
    void* y = nullptr;
    void* saved_mean = nullptr;
    void* saved_inverse = nullptr;
    void* dx = nullptr;
    void* dweight = nullptr;
    void* dbias = nullptr;
  };

  bool centered() const { return mode != RowNormMode::rms; }
  // Whether the parameters vary along dimension d of x in the form of in_rows().
  bool has_parameters_along(int d) const { return mode == RowNormMode::group ? d == 1 || d == 2 : d >= axis; }
  // See ConvolutionProblem.
  char const* sums_over_batch() const {
    return dweight.present() || dbias.present() ? "the gradients of weight and bias are sums" : nullptr;
  }

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    bool const forward = problem.direction == Direction::forward;
    auto const input = [&](char const* name, auto& tensor, auto member) {
      if (tensor.present()) visit(name, Role::input, tensor, member);
    };
    auto const output = [&](char const* name, auto& tensor, auto member) {
      if (tensor.present()) visit(name, Role::output, tensor, member);
    };
    visit("x", Role::input, problem.x, &Arguments::x);
    if (!forward) visit("dy", Role::input, problem.y, &Arguments::dy);
    input("weight", problem.weight, &Arguments::weight);
    if (forward) {
      input("bias", problem.bias, &Arguments::bias);
      visit("y", Role::output, problem.y, &Arguments::y);
      if (problem.centered()) output("saved_mean", problem.statistics, &Arguments::saved_mean);
      output("saved_inverse", problem.statistics, &Arguments::saved_inverse);
    } else {
      if (problem.centered()) visit("mean", Role::input, problem.statistics, &Arguments::mean);
      visit("inverse", Role::input, problem.statistics, &Arguments::inverse);
      visit("dx", Role::output, problem.dx, &Arguments::dx);
      output("dweight", problem.dweight, &Arguments::dweight);
      output("dbias", problem.dbias, &Arguments::dbias);
    }
  }
};

// y[n, c] = x[n, c] / base^beta, with x (N, C, ...) and, as in ONNX,
//   base = k + alpha / size * sum of x[n, i]^2 over channels i in [c - (size-1)/2, c + size/2].
// backward computes dx from x and dy. A NaN affects only the windows that contain it.
struct LrnProblem {
  Direction direction = Direction::forward;
  TensorDescription x;
  TensorDescription y;  // y or dy
  TensorDescription dx;
  Index size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;

  struct Arguments {
    void const* x = nullptr;
    void const* dy = nullptr;
    void* y = nullptr;
    void* dx = nullptr;
  };

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("x", Role::input, problem.x, &Arguments::x);
    if (problem.direction == Direction::forward) {
      visit("y", Role::output, problem.y, &Arguments::y);
    } else {
      visit("dy", Role::input, problem.y, &Arguments::dy);
      visit("dx", Role::output, problem.dx, &Arguments::dx);
    }
  }
};

void validate(BatchNormProblem const& problem);  // throws Error(bad_request)
// Returns the problem in the form that kernels compute: each tensor has the rank of x, with strides of 0
// along dimensions in which it does not vary. For group, C becomes the two dimensions (groups, C / groups),
// and axis is 2.
RowNormProblem in_rows(RowNormProblem problem);
void validate(RowNormProblem const& problem);  // throws Error(bad_request)
void validate(LrnProblem const& problem);      // throws Error(bad_request)

}  // namespace cosmati
