// Types shared by both interfaces of the fake cuDNN.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/bench/peers/cudnn.h"
#include "cosmati/core/number.h"
#include "cosmati/ops/convolution.h"

namespace cosmati::cli::cudnn {

constexpr Status bad_parameter{2000};

struct Context {
  CUstream_st* stream = nullptr;
};
struct TensorDescriptor {
  Number type;
  Format format;
  Layout layout;
};
struct FilterDescriptor : TensorDescriptor {};
struct ConvolutionDescriptor {
  int pad[2], stride[2], dilation[2], pad_end[2];
  int groups = 1;
  Math math = Math::standard;
};

inline DataType type_of(Number number) {
  switch (number) {
    case Number::f64: return DataType::f64;
    case Number::f16: return DataType::f16;
    case Number::bf16: return DataType::bf16;
    default: return DataType::f32;
  }
}

struct Operand {
  TensorDescriptor const& tensor;
  void* data;

  Index extent(int dimension) const { return tensor.layout.extent(dimension); }
  double at(Index i, Index j, Index k, Index l) const {
    return load(type_of(tensor.type), data, tensor.layout.offset(i, j, k, l));
  }
  void set(Index linear, double value) const {
    store(type_of(tensor.type), data, tensor.layout.offset_of_linear(linear), value);
  }
};

Status refusal(Operand const& x, Operand const& w, Operand const& y,
               ConvolutionDescriptor const& convolution);
// Computes `result`, one of the three operands, by summing all products that contribute to it.
Status convolve(Operand const& x, Operand const& w, Operand const& y,
                ConvolutionDescriptor const& convolution, Operand const& result);

}  // namespace cosmati::cli::cudnn
