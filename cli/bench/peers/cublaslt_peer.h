// A matrix product by cuBLASLt, on the device and buffers on which our kernel is timed.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/peers/cublaslt.h"
#include "cli/bench/peers/peer.h"
#include "src/backend/cuda/driver/resources.h"

namespace cosmati::cli {

// Computes d = alpha * a * b + beta * c, column-major. Factors are f64, f32 (never rounded to TF32), tf32,
// f16, bf16, s8 or fp8 (without scales); sums are f32, f64, f16 or s32, as the problem specifies. A batch by
// pointers is passed as arrays of device pointers, as to cublasGemmBatchedEx. Uses the calling thread's
// current context.
class CublasLtPeer {
 public:
  static constexpr int max_algorithms = 8;
  static constexpr std::size_t max_workspace_bytes = std::size_t{64} << 20;

  // Queries the heuristics if the library supports such products at all. Throws Error(unavailable) if the
  // library is not installed.
  CublasLtPeer(PeerProblem const& problem, int ordinal);

  std::string const& refusal() const { return refusal_; }  // empty if it computes this product
  int algorithms() const {
    return static_cast<int>(found_.size());
  }  // number 0 is the first choice of the heuristics
  std::size_t workspace_bytes(int algorithm) const {
    return found_[static_cast<std::size_t>(algorithm)].workspace_bytes;
  }
  // Enqueues on the stream; null is the default stream. Throws Error(system) if the call fails.
  void run(int algorithm, void const* a, void const* b, void const* c, void* d,
           Stream stream = nullptr) const;

 private:
  template <class Handle>
  using Owned = std::unique_ptr<Handle, cublaslt::Status (*)(Handle*)>;
  Owned<cublaslt::Matrix> matrix(DataType type, Index rows, Index columns, Index batch,
                                 PeerMatrix const& place, bool by_pointers) const;
  void describe(PeerProblem const& problem);
  void ask_heuristics(PeerProblem const& problem);

  // alpha and beta (0, 1 or another number) in the type of the sums.
  struct Scalar {
    alignas(8) unsigned char bytes[8] = {};
  };
  static Scalar scalar(double value, DataType type);

  cublaslt::Library const& library_;
  Owned<cublaslt::Context> context_;
  Owned<cublaslt::Product> product_;
  Owned<cublaslt::Matrix> a_, b_, c_, d_;
  Scalar alpha_, beta_;
  cuda::DeviceBuffer workspace_;
  std::vector<cublaslt::Heuristic> found_;
  std::string refusal_;
  bool source_may_be_result_ = true;  // if c is not read, it may alias d
};

}  // namespace cosmati::cli
