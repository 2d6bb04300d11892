// A group of matrix products by cuBLAS, on the device and buffers on which our kernel is timed.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/peers/cublas.h"
#include "cli/bench/peers/gpu_peer.h"
#include "src/backend/cuda/driver/resources.h"

namespace cosmati::cli {

// Computes d = alpha * a * b, column-major, for each member by cublasGemmGroupedBatchedEx, with every member
// a group of one product. Types f64 (f64 sums), f32 (never rounded to TF32), tf32, f16 and bf16 (f32 sums).
// Uses the calling thread's current context.
class CublasGroup final : public GpuPeer {
 public:
  static constexpr std::size_t workspace_size = std::size_t{64} << 20;

  // Throws Error(unavailable) if the library is not installed.
  CublasGroup(PeerProblem const& problem, GpuOperands const& operands, int ordinal);

  std::string version() const override { return version_; }
  std::string const& refusal() const override { return refusal_; }
  int algorithms() const override { return refusal_.empty() ? 1 : 0; }
  std::size_t workspace_bytes(int) const override { return workspace_size; }
  void run(int algorithm, std::size_t set, Stream stream) const override;
  std::optional<double> tolerance() const override;

 private:
  struct Matrix {
    cublas::Operation operation;
    std::int64_t leading;
  };
  static Matrix matrix_of(TensorDescription const& tensor);
  void describe(PeerProblem const& problem);
  void make_arrays(GpuOperands const& operands, std::size_t slots_of_member, int ordinal);

  cublas::Library const& library_;
  std::unique_ptr<cublas::Context, cublas::Status (*)(cublas::Context*)> context_;
  DataType type_;
  std::vector<cublas::Operation> a_operations_, b_operations_;
  std::vector<std::int64_t> m_, n_, k_, a_leading_, b_leading_, d_leading_, ones_;
  std::vector<double> alphas_f64_, betas_f64_;
  std::vector<float> alphas_, betas_;
  std::vector<cuda::DeviceBuffer> arrays_;  // pointer arrays of each set: those of a, of b, of d
  cuda::DeviceBuffer workspace_;
  std::string version_, refusal_;
};

}  // namespace cosmati::cli
