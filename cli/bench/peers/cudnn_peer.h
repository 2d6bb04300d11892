// A convolution by cuDNN, interleaved with ours on one device.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/peers/cudnn_graph.h"
#include "cli/bench/peers/cudnn_legacy.h"
#include "cli/bench/peers/gpu_peer.h"
#include "src/backend/cuda/driver/resources.h"

namespace cosmati::cli {

// Computes forward, data and filter without an epilogue, for f64 (f64 sums), f32 (never rounded to TF32),
// tf32, f16 and bf16 (f32 sums). Candidates are the plans of the graph interface (heuristics modes A and B
// and the fallback list), which PyTorch uses, and the fastest algorithms of the legacy
// cudnnFindConvolution*AlgorithmEx, each for NCHW and for NHWC. Number 0 is the first choice of the
// heuristics for the problem's layout (NCHW for CHWN). Tensors in other layouts are copied before timing
// starts. If the problem's padding is asymmetric, x (dx) is part of a larger array that holds the difference
// as zeros, as callers of the library do; the graph interface is also offered the asymmetric padding itself.
// Uses the calling thread's current context.
class CudnnPeer final : public GpuPeer {
 public:
  static constexpr int max_plans = 48;      // plans of the graph interface, per arrangement
  static constexpr int max_algorithms = 3;  // legacy algorithms, per arrangement
  static constexpr double worth_timing =
      1.5;  // relative to the fastest legacy algorithm, by the library's timing
  static constexpr std::size_t max_legacy_bytes = std::size_t{512}
                                                  << 20;  // workspace limit of legacy algorithms
  static constexpr std::size_t max_plan_bytes = std::size_t{4}
                                                << 30;  // workspace limit, besides half of the free memory

  // same_layout: plans only for the problem's layout, not for the other one. Throws Error(unavailable) if the
  // library is not installed.
  CudnnPeer(ConvolutionProblem const& problem, GpuOperands const& operands, int ordinal,
            bool same_layout = false);

  std::string version() const override { return cudnn::version(); }
  std::string const& refusal() const override { return refusal_; }
  int algorithms() const override { return static_cast<int>(choices_.size()); }
  std::size_t workspace_bytes(int algorithm) const override;
  PeerAlgorithm algorithm(int algorithm) const override;
  std::vector<PeerTrial> left_out() const override { return left_out_; }
  void run(int algorithm, std::size_t set, Stream stream) const override;
  void copy_result(int algorithm, std::size_t set) const override;
  std::optional<double> tolerance() const override;

 private:
  // A tensor or filter in one of the library's layouts.
  struct Array {
    std::size_t slot = 0;  // number of our slot
    TensorDescription ours = {};
    Index offset[2] = {};                          // row and column where our array begins in it
    std::vector<cuda::DeviceBuffer> buffers = {};  // one per set; empty if our arrays are used
  };
  // Padding on each side, and the part of it that x's array holds as zeros.
  struct Padding {
    Index begin[2] = {}, end[2] = {}, before[2] = {}, after[2] = {};
    bool is_in_array() const { return before[0] + before[1] + after[0] + after[1] > 0; }
    bool is_even() const { return begin[0] == end[0] && begin[1] == end[1]; }
  };
  struct Arrangement {
    CudnnConvolution asked;
    bool is_padded_array = false;
    Array x = {}, w = {}, y = {};
    std::unique_ptr<CudnnGraph> graph = {};                      // null if the graph interface rejects it
    std::unique_ptr<CudnnLegacy> legacy = {};                    // null if the padding is asymmetric
    mutable std::vector<std::optional<CudnnObject>> packs = {};  // one per set, made on first use
  };
  // A plan of the graph interface or a legacy algorithm.
  struct Choice {
    std::size_t arrangement;
    std::optional<CudnnGraph::Plan> plan;
    std::optional<CudnnLegacy::Algorithm> legacy;
  };

  static std::string layout_of(Arrangement const& one);
  Padding even_padding() const;
  Padding uneven_padding() const;
  void add(cudnn::Format format, Padding const& padding);
  void place(Array& array, cudnn::Format format, Index const (&extents)[4]);
  void copy(Arrangement const& one, Array const& array, std::size_t set, bool back) const;
  std::vector<CudnnGraph::Plan> plans_of(Arrangement const& one, std::size_t max_bytes);
  std::vector<Choice> legacy_choices();
  void find_choices();
  template <class Work>
  bool attempt(Arrangement const& one, char const* interface, Work const& work);
  CudnnArrays arrays_of(Arrangement const& one, std::size_t set) const;
  std::int64_t alignment_of(Arrangement const& one) const;

  cudnn::Context* context_ = nullptr;
  ConvolutionProblem problem_;
  GpuOperands const& operands_;
  int ordinal_;
  std::size_t legacy_bytes_ = 0;  // workspace of the legacy algorithms
  cuda::DeviceBuffer workspace_;
  std::vector<Arrangement> arrangements_;
  std::vector<Choice> choices_;
  std::vector<PeerTrial> left_out_;
  std::string failures_, refusal_;
};

}  // namespace cosmati::cli
