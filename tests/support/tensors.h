// Tensors from and to lists of numbers, for hand-computed cases.
#pragma once
#include <initializer_list>
#include <vector>

#include "cosmati/ops/tensor.h"

namespace cosmati::testing {

// Row-major, in the order of the indices.
inline Tensor tensor(Shape const& shape, std::initializer_list<double> values,
                     DataType type = DataType::f64) {
  Tensor result(type, shape);
  Index i = 0;
  for (double value : values) result.set(i++, value);
  return result;
}

// A poisoned output that the test must fill.
inline Tensor poisoned(Shape const& shape, DataType type = DataType::f64) {
  Tensor result(type, shape);
  result.fill(-77);
  return result;
}

inline std::vector<double> values_of(Tensor const& tensor) {
  std::vector<double> values;
  for (Index i = 0; i < tensor.size(); ++i) values.push_back(tensor.get(i));
  return values;
}

using Values = std::vector<double>;

}  // namespace cosmati::testing
