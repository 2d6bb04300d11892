// The trainable numbers of a network: one flat array for all of them, so that an optimiser's step is one
// operation.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/optimizer.h"
#include "cosmati/ops/tensor.h"

namespace cosmati::nets {

// A named part of the flat arrays of Parameters.
struct Parameter {
  std::string name;
  TensorDescription description;  // f32, row-major
  Index offset = 0;               // elements from the start of the flat array
  bool trainable = true;
};

// Parameters of a network with their gradients and the state of the optimiser, all f32, in host memory.
class Parameters {
 public:
  // Returns the number of the parameter of this name, which is added if there is none. All are added before
  // allocate().
  int add(std::string name, Shape shape, bool trainable = true);
  // Makes room for values, gradients and `state_count` arrays of optimiser state, all zero. What is trainable
  // comes first in the flat arrays.
  void allocate(int state_count);

  std::vector<Parameter> const& list() const { return list_; }
  Parameter const& operator[](int number) const { return list_[static_cast<std::size_t>(number)]; }
  int find(std::string const& name) const;  // -1 if there is none

  float* value(int number) { return at(value_, number); }
  float const* value(int number) const { return value_.as<float>() + (*this)[number].offset; }
  float* gradient(int number) { return at(gradient_, number); }
  float* state(int which, int number) { return at(state_[static_cast<std::size_t>(which)], number); }
  int state_count() const { return static_cast<int>(state_.size()); }

  // The trainable part of the flat arrays, for the optimiser.
  TensorDescription trainable() const { return describe(DataType::f32, Shape(trainable_elements_)); }
  Index trainable_count() const;  // numbers that are trained, without padding
  float* values() { return value_.as<float>(); }
  float* gradients() { return gradient_.as<float>(); }
  float* states(int which) {
    return static_cast<std::size_t>(which) < state_.size()
               ? state_[static_cast<std::size_t>(which)].as<float>()
               : nullptr;
  }

 private:
  float* at(Tensor& flat, int number) { return flat.as<float>() + (*this)[number].offset; }

  std::vector<Parameter> list_;
  Index trainable_elements_ = 0;
  Tensor value_;
  Tensor gradient_;
  std::vector<Tensor> state_;
};

}  // namespace cosmati::nets
