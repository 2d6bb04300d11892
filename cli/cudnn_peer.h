// A convolution by cuDNN, beside ours on one device.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/cudnn.h"
#include "cli/gpu_peer.h"
#include "cosmati/ops/convolution.h"
#include "src/backend/cuda/resources.h"

namespace cosmati::cli {

// forward, data and filter without an epilogue, of f64, f32 (never cut to TF32), tf32, f16 and bf16, sums in
// f32 (f64 of f64). The fastest algorithms by cudnnFindConvolution*AlgorithmEx, for NCHW and for NHWC: number
// 0 is the first of the layout that the problem has (of CHWN: of NCHW). Tensors that lie otherwise have
// copies of their own here, made before anything is timed. The library pads both sides alike: where the
// problem does not, x (dx) is a part of a larger array that holds the difference as zeros, as callers of the
// library do it. Of the calling thread's current context.
class CudnnPeer final : public GpuPeer {
 public:
  static constexpr int most_algorithms = 3;    // that are timed, of each layout
  static constexpr double worth_timing = 1.5;  // times as slow as the fastest, by the library's own timing
  static constexpr std::size_t most_workspace_bytes = std::size_t{512} << 20;

  // Throws Error(unavailable) if the library is not here.
  CudnnPeer(ConvolutionProblem const& problem, GpuOperands const& operands, int ordinal);

  std::string version() const override { return cudnn::version(); }
  std::string const& refusal() const override { return refusal_; }
  int algorithms() const override { return static_cast<int>(choices_.size()); }
  std::size_t workspace_bytes(int algorithm) const override {
    return choices_[static_cast<std::size_t>(algorithm)].performance.workspace_bytes;
  }
  std::string algorithm_name(int algorithm) const override;  // "implicit_precomp_gemm nhwc"
  void run(int algorithm, std::size_t set) const override;
  void bring_back(int algorithm, std::size_t set) const override;
  std::optional<double> tolerance() const override;

 private:
  template <class Handle>
  using Owned = std::unique_ptr<Handle, cudnn::Status (*)(Handle*)>;

  // A tensor or filter as the library has it in one layout.
  struct Array {
    std::size_t slot = 0;  // of ours
    TensorDescription ours = {};
    Index extents[4] = {};                         // larger than ours where padding is a part of the array
    Index offset[2] = {};                          // of our first row and column in it
    std::vector<cuda::DeviceBuffer> buffers = {};  // one for each set; none: ours are used
  };
  struct Arrangement {
    cudnn::Format format;
    Array x, w, y;
    Owned<cudnn::TensorDescriptor> x_tensor, y_tensor;
    Owned<cudnn::FilterDescriptor> w_filter;
  };
  struct Choice {
    std::size_t arrangement;
    cudnn::Performance performance;
    Owned<cudnn::ConvolutionDescriptor> convolution;
  };

  void choose_padding();
  void add(cudnn::Format format);
  void place(Array& array, cudnn::Format format);
  void convert(Array const& array, cudnn::Format format, std::size_t set, bool back) const;
  void find(Arrangement const& one);
  void drop_slow_ones();
  void* address(Array const& array, std::size_t set) const;
  Owned<cudnn::TensorDescriptor> tensor() const;
  Owned<cudnn::TensorDescriptor> strided_tensor(TensorDescription const& description) const;
  Owned<cudnn::FilterDescriptor> filter_descriptor() const;
  Owned<cudnn::ConvolutionDescriptor> convolution(cudnn::Math math) const;

  cudnn::Library const& library_;
  cudnn::Context* context_ = nullptr;
  ConvolutionProblem problem_;
  GpuOperands const& operands_;
  int ordinal_;
  cudnn::Number number_ = cudnn::Number::f32;
  Index pad_[2] = {0, 0}, before_[2] = {0, 0}, after_[2] = {0, 0};  // both sides alike; zeros in the array
  cuda::DeviceBuffer workspace_;
  std::vector<Arrangement> arrangements_;
  std::vector<Choice> choices_;
  std::string failures_, refusal_;
};

}  // namespace cosmati::cli
