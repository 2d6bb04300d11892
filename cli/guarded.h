// Memory of an output: filled with a pattern, between guard bands that nobody may touch.
#pragma once
#include <cstddef>
#include <string>

#include "cosmati/ops/tensor.h"

namespace cosmati::cli {

class GuardedOutput {
 public:
  // 0xff makes NaN of every floating-point type.
  GuardedOutput(TensorDescription const& description, unsigned char poison);

  void* data() { return memory_.as<unsigned char>() + guard; }
  void const* data() const { return memory_.as<unsigned char>() + guard; }
  void copy_from(Tensor const& tensor);  // of the same description
  Tensor contents() const;               // a copy of the elements
  // Empty if nothing but elements was written; else where something was. Spoils the elements.
  std::string trespass();

 private:
  static constexpr Index guard = 512;
  TensorDescription description_;
  unsigned char poison_;
  Tensor memory_;
};

}  // namespace cosmati::cli
