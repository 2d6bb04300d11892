// A convolution by cuDNN's legacy calls.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/peers/cudnn_convolution.h"

namespace cosmati::cli {

// Supports only equal padding on both sides. Throws Error(system) if a call fails.
class CudnnLegacy {
 public:
  template <class Handle>
  using Owned = std::unique_ptr<Handle, cudnn::Status (*)(Handle*)>;

  struct Algorithm {
    cudnn::Performance performance;
    Owned<cudnn::ConvolutionDescriptor> convolution;
  };

  CudnnLegacy(cudnn::Context* context, CudnnConvolution const& convolution);

  // Lets the library time its algorithms; returns the fastest, at most `maximum`, in order.
  std::vector<Algorithm> find(CudnnArrays const& arrays, void* workspace, std::size_t bytes,
                              int maximum) const;
  void run(Algorithm const& algorithm, CudnnArrays const& arrays, void* workspace, std::size_t bytes) const;
  std::string name_of(Algorithm const& algorithm) const;  // "implicit_precomp_gemm"

  // Copies elements into another layout. 16-bit elements keep their bits.
  static void copy(cudnn::Context* context, cudnn::Number number, Layout const& from, void const* source,
                   Layout const& to, void* target);

 private:
  static Owned<cudnn::TensorDescriptor> strided_tensor(cudnn::Number number, Layout const& layout);
  static Owned<cudnn::TensorDescriptor> tensor();
  Owned<cudnn::ConvolutionDescriptor> with_math(cudnn::Math math) const;

  cudnn::Library const& library_;
  cudnn::Context* context_;
  CudnnConvolution asked_;
  Owned<cudnn::TensorDescriptor> x_, y_;
  Owned<cudnn::FilterDescriptor> w_;
};

}  // namespace cosmati::cli
