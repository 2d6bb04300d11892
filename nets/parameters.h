// The parameters of a network: one flat array for all of them, so that an optimizer step is one operation.
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
  // For a filter (k, c, r, s): whether output k is connected to input c, at k * c_count + c. Empty: all are.
  // Unconnected elements stay zero and are not counted.
  std::vector<bool> connected;
};

// Parameters of a network and the state of its optimizer, all f32, in host memory.
class Parameters {
 public:
  // Returns the number of the parameter of this name, adding it if necessary. All must be added before
  // allocate().
  int add(std::string name, Shape shape, bool trainable = true, std::vector<bool> connected = {});
  // Allocates values and `state_count` arrays of optimizer state, all zero. Trainable parameters come first
  // in the flat arrays.
  void allocate(int state_count);

  std::vector<Parameter> const& list() const { return list_; }
  Parameter const& operator[](int number) const { return list_[static_cast<std::size_t>(number)]; }
  int find(std::string const& name) const;  // -1 if there is none

  float* value(int number) { return values() + (*this)[number].offset; }
  float const* value(int number) const { return value_.as<float>() + (*this)[number].offset; }
  float* state(int which, int number) { return states(which) + (*this)[number].offset; }
  int state_count() const { return static_cast<int>(state_.size()); }

  // The trainable part of the flat arrays, for the optimizer.
  TensorDescription trainable() const { return describe(DataType::f32, Shape(trainable_elements_)); }
  float* values() { return value_.as<float>(); }
  float const* values() const { return value_.as<float>(); }
  std::size_t value_bytes() const { return value_.bytes(); }
  std::size_t state_bytes() const { return state_.empty() ? 0 : state_[0].bytes(); }
  float* states(int which) {
    auto const at = static_cast<std::size_t>(which);
    return at < state_.size() ? state_[at].as<float>() : nullptr;
  }

 private:
  std::vector<Parameter> list_;
  Index trainable_elements_ = 0;
  Tensor value_;
  std::vector<Tensor> state_;
};

}  // namespace cosmati::nets
