// Tensor memory filled with a pattern, between guard bands.
#pragma once
#include <cstddef>
#include <string>

#include "cosmati/ops/tensor.h"

namespace cosmati::cli {

class GuardedTensor {
 public:
  static constexpr Index guard = 512;  // bytes before the first element, and after the last

  // A poison of 0xff is NaN in every floating-point type. The first element is at `offset` bytes past a
  // multiple of 64.
  GuardedTensor(TensorDescription const& description, unsigned char poison, Index offset = 0);

  void* data() { return memory_.as<unsigned char>() + guard + offset_; }
  void const* data() const { return memory_.as<unsigned char>() + guard + offset_; }
  void copy_from(Tensor const& tensor);  // requires an equal description
  Tensor contents() const;               // a copy of the elements
  // Describes the first write outside the elements, or is empty if there was none. Overwrites the elements.
  std::string trespass();

 private:
  TensorDescription description_;
  unsigned char poison_;
  Index offset_;
  Tensor memory_;
};

}  // namespace cosmati::cli
