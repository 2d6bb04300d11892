// A matrix product by cuBLASLt, on the device and the buffers that our kernel is timed on.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/peers/cublaslt.h"
#include "cli/bench/peers/peer.h"
#include "src/backend/cuda/driver/resources.h"

namespace cosmati::cli {

// d = alpha * a * b + beta * c, column-major. Factors of f64, f32 (never cut to TF32), tf32, f16, bf16, s8
// and fp8 (without scales); sums as the problem says: f32, f64, f16 or s32. A batch by pointers is passed as
// arrays of pointers on the device, as to cublasGemmBatchedEx. Uses the calling thread's current context.
class CublasLtPeer {
 public:
  static constexpr int most_algorithms = 8;
  static constexpr std::size_t most_workspace_bytes = std::size_t{64} << 20;

  // Asks the heuristics, if the library has such products at all. Throws Error(unavailable) if it is not
  // here.
  CublasLtPeer(PeerProblem const& problem, int ordinal);

  std::string const& refusal() const { return refusal_; }             // empty: it computes this product
  int algorithms() const { return static_cast<int>(found_.size()); }  // the heuristics' first is number 0
  std::size_t workspace_bytes(int algorithm) const {
    return found_[static_cast<std::size_t>(algorithm)].workspace_bytes;
  }
  // Enqueues on the stream; null is the default stream. Throws Error(system) if the library refuses.
  void run(int algorithm, void const* a, void const* b, void const* c, void* d,
           Stream stream = nullptr) const;

 private:
  template <class Handle>
  using Owned = std::unique_ptr<Handle, cublaslt::Status (*)(Handle*)>;
  Owned<cublaslt::Matrix> matrix(DataType type, Index rows, Index columns, Index batch,
                                 PeerMatrix const& place, bool by_pointers) const;
  void describe(PeerProblem const& problem);
  void ask_heuristics(PeerProblem const& problem);

  // 1 and 0 in the type of the sums, and other numbers.
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
  bool source_may_be_result_ = true;  // where c is not read, it may be the memory of d
};

}  // namespace cosmati::cli
