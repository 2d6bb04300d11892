// A convolution as it is described to cuDNN, through either of its interfaces.
#pragma once
#include "cli/bench/peers/cudnn.h"
#include "cosmati/ops/convolution.h"

namespace cosmati::cli {

// x: (N, C, H, W), w: (K, C / groups, R, S), y: (N, K, P, Q), dense, all in one layout. `data` computes x
// from w and y, `filter` computes w from x and y. Sums are f64 for f64, otherwise f32.
struct CudnnConvolution {
  ConvolutionDirection direction = ConvolutionDirection::forward;
  DataType type = DataType::f32;  // tf32: f32 whose products may round to TF32; for f32 they may not
  cudnn::Number number = cudnn::Number::f32;
  cudnn::Format format = cudnn::Format::nchw;
  Index x[4] = {}, w[4] = {}, y[4] = {};
  Index stride[2] = {1, 1}, dilation[2] = {1, 1}, pad_begin[2] = {}, pad_end[2] = {};
  Index groups = 1;

  bool has_f64_sums() const { return number == cudnn::Number::f64; }
};

// Device pointers of x, w and y.
struct CudnnArrays {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
};

inline Layout cudnn_layout(cudnn::Format format, Index const (&e)[4]) {
  return image_layout(format == cudnn::Format::nhwc ? TensorFormat::nhwc : TensorFormat::nchw, e[0], e[1],
                      e[2], e[3]);
}

}  // namespace cosmati::cli
