// Softmax, log-softmax, and the losses of a classifier: cross-entropy and the Gaussian (RBF) output layer.
#pragma once
#include "cosmati/ops/pooling.h"

namespace cosmati {

// Along `axis`: y = exp(x - max) / sum of exp(x - max), or its logarithm; NaN if the row contains NaN or
// +inf. backward, from y: softmax dx = y * (dy - sum of dy*y); log-softmax dx = dy - exp(y) * sum of dy. All
// tensors have the same shape.
struct SoftmaxProblem {
  Direction direction = Direction::forward;
  bool logarithm = false;
  int axis = 1;
  TensorDescription x;  // x or dx
  TensorDescription y;
  TensorDescription dy;

  struct Arguments {
    void const* x = nullptr;
    void const* saved_y = nullptr;
    void const* dy = nullptr;
    void* y = nullptr;
    void* dx = nullptr;
  };

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    if (problem.direction == Direction::forward) {
      visit("x", Role::input, problem.x, &Arguments::x);
      visit("y", Role::output, problem.y, &Arguments::y);
    } else {
      visit("y", Role::input, problem.y, &Arguments::saved_y);
      visit("dy", Role::input, problem.dy, &Arguments::dy);
      visit("dx", Role::output, problem.x, &Arguments::dx);
    }
  }
};

// loss[0] = mean over n of -log softmax(x[n])[label[n]]; backward: dx = (softmax(x) - one_hot(label)) / N.
// Forward also computes dx if present, in the same pass. A label outside [0, classes) throws Error on host
// backends; on a GPU the loss and that row of dx become NaN.
struct CrossEntropyProblem {
  Direction direction = Direction::forward;
  TensorDescription x;       // (N, classes)
  TensorDescription labels;  // (N), s32
  TensorDescription loss;    // (1), for forward
  TensorDescription dx;      // (N, classes)

  struct Arguments {
    void const* x = nullptr;
    void const* labels = nullptr;
    void* loss = nullptr;
    void* dx = nullptr;
  };

  // See ConvolutionProblem. The gradient is that of the mean, which depends on the batch size.
  char const* sums_over_batch() const {
    return direction == Direction::forward ? "the loss is a mean"
                                           : "the loss, whose gradient this is, is a mean";
  }

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("x", Role::input, problem.x, &Arguments::x);
    visit("labels", Role::input, problem.labels, &Arguments::labels);
    if (problem.direction == Direction::forward) visit("loss", Role::output, problem.loss, &Arguments::loss);
    if (problem.dx.present()) visit("dx", Role::output, problem.dx, &Arguments::dx);
  }
};

// Gaussian units: distance[n, i] = sum over f of (x[n, f] - centre[i, f])^2; unit i outputs exp(-distance).
// Loss (LeCun et al. 1998, eq. 9, averaged over n): distance[label] + log(exp(-rubbish) + sum over i of
// exp(-distance[i])); rubbish = infinity omits the constant: the loss is then the negative log-likelihood of
// the label under softmax(-distance). backward computes dx and, if present, dcentres: of the loss if there
// are labels, otherwise of the distances from ddistances.
struct RbfProblem {
  Direction direction = Direction::forward;
  TensorDescription x;          // (N, F); x or dx
  TensorDescription centres;    // (classes, F)
  TensorDescription labels;     // (N), s32; absent: no loss
  TensorDescription distances;  // (N, classes); distances or ddistances; may be absent if there are labels
  TensorDescription loss;       // (1)
  TensorDescription dcentres;   // (classes, F)
  double rubbish = __builtin_huge_val();

  struct Arguments {
    void const* x = nullptr;
    void const* centres = nullptr;
    void const* labels = nullptr;
    void const* ddistances = nullptr;
    void* distances = nullptr;
    void* loss = nullptr;
    void* dx = nullptr;
    void* dcentres = nullptr;
  };

  // See ConvolutionProblem.
  char const* sums_over_batch() const {
    if (labels.present()) return "the loss is a mean";
    return dcentres.present() ? "the gradient of the centres is a sum" : nullptr;
  }

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    bool const labeled = problem.labels.present();
    visit("x", Role::input, problem.x, &Arguments::x);
    visit("centres", Role::input, problem.centres, &Arguments::centres);
    if (labeled) visit("labels", Role::input, problem.labels, &Arguments::labels);
    if (problem.direction == Direction::forward) {
      if (problem.distances.present())
        visit("distances", Role::output, problem.distances, &Arguments::distances);
      if (labeled) visit("loss", Role::output, problem.loss, &Arguments::loss);
    } else {
      if (!labeled) visit("ddistances", Role::input, problem.distances, &Arguments::ddistances);
      visit("dx", Role::output, problem.x, &Arguments::dx);
      if (problem.dcentres.present()) visit("dcentres", Role::output, problem.dcentres, &Arguments::dcentres);
    }
  }
};

// Throws Error(bad_request) naming the first label outside [0, classes). `data` points to the labels.
void check_labels(char const* operation, TensorDescription const& labels, void const* data, Index classes);

void validate(SoftmaxProblem const& problem);       // throws Error(bad_request)
void validate(CrossEntropyProblem const& problem);  // throws Error(bad_request)
void validate(RbfProblem const& problem);           // throws Error(bad_request)

}  // namespace cosmati
