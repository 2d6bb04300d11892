// Gradients against central differences: (loss(x + h) - loss(x - h)) / 2h for each element of x.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "cosmati/ops/tensor.h"

namespace cosmati::testing {

// The loss whose gradient with respect to y is dy: sum of dy * y.
inline double weighted_sum(Tensor const& dy, Tensor const& y) {
  double sum = 0;
  for (Index i = 0; i < y.size(); ++i) sum += dy.get(i) * y.get(i);
  return sum;
}

// Expects gradient[i] = d loss / d x[i] for every i. `loss()` computes the loss from the current contents of
// x, an f64 tensor, which is restored afterward. The error of a central difference is about step^2 + 1e-16 /
// step.
template <class Loss>
void expect_gradient(std::string const& name, Tensor& x, Tensor const& gradient, Loss const& loss,
                     double tolerance = 1e-7, double step = 1e-5) {
  ASSERT_EQ(x.type(), DataType::f64);
  ASSERT_EQ(x.size(), gradient.size());
  for (Index i = 0; i < x.size(); ++i) {
    double const value = x.get(i);
    x.set(i, value + step);
    double const above = loss();
    x.set(i, value - step);
    double const below = loss();
    x.set(i, value);
    double const expected = (above - below) / (2 * step);
    double const error = std::fabs(gradient.get(i) - expected);
    EXPECT_LE(error, tolerance * std::max(1.0, std::fabs(expected)))
        << name << ", element " << i << ": " << gradient.get(i) << ", central difference " << expected;
  }
}

}  // namespace cosmati::testing
