// Random shapes, layouts and tensors from a seed, the same with every standard library.
#pragma once
#include <cmath>
#include <random>
#include <utility>

#include "cosmati/ops/tensor.h"

namespace cosmati::testing {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  Index between(Index low, Index high) {  // both bounds are included
    return low + static_cast<Index>(engine_() % static_cast<unsigned long long>(high - low + 1));
  }
  bool coin() { return between(0, 1) == 1; }

  // The dimensions in random order in memory, with gaps between them.
  Layout layout(Shape const& shape) {
    int order[max_rank] = {0, 1, 2, 3, 4, 5};
    for (int d = shape.rank - 1; d > 0; --d) std::swap(order[d], order[between(0, d)]);
    Layout layout{shape, {}};
    Index step = between(1, 2);
    for (int i = 0; i < shape.rank; ++i) {
      layout.stride[order[i]] = step;
      step = step * (shape[order[i]] > 0 ? shape[order[i]] : 1) + between(0, 2);
    }
    return layout;
  }
  // Uniform random numbers in [low, high), in any layout.
  Tensor tensor(Shape const& shape, double low = -1, double high = 1, DataType type = DataType::f64) {
    Tensor result(describe(type, layout(shape)));
    for (Index i = 0; i < result.size(); ++i) result.set(i, uniform(low, high));
    return result;
  }
  // The values 0, 0.1, 0.2, ... in random order, so that no two are close.
  Tensor distinct(Shape const& shape) {
    Tensor result(describe(DataType::f64, layout(shape)));
    for (Index i = 0; i < result.size(); ++i) {
      Index const other = between(0, i);
      result.set(i, result.get(other));
      result.set(other, 0.1 * static_cast<double>(i));
    }
    return result;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace cosmati::testing
