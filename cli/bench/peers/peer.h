// Peer libraries. A CPU peer is timed in a separate process, because two threading runtimes in one process
// slow each other down.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/peers/piped_process.h"
#include "cosmati/core/number.h"
#include "cosmati/ops/convolution.h"

namespace cosmati::cli {

// Layout of a matrix in memory; 0: dense, and aligned to 256 bytes.
struct PeerMatrix {
  Index leading = 0, batch_stride = 0;  // elements between columns, between matrices
  int alignment = 0;                    // bytes
};

// The product that a peer times, column-major as in BLAS. On the CPU it is a * b alone.
struct PeerProblem {
  std::string peer;    // CPU: "onednn", "openblas"; GPU: "cublaslt", "cublas", "cudnn"; both: "torch"
  std::string layout;  // "nn"
  DataType type = DataType::f32;
  Index m = 0, n = 0, k = 0, batch = 1;
  long long buffers = 1;  // sets of operands, used in rotation
  int threads = 1;
  DataType result = DataType::f32, sum = DataType::f32;  // type of c and d; type of the sums
  double alpha = 1, beta = 0;
  PeerMatrix place_a = {}, place_b = {}, place_d = {};  // GPU only; c has the layout of d
  std::optional<DataType> type_b = {};                  // type of b if it is not `type`; GPU only
  bool by_pointers = false;  // GPU only: the batch is given as arrays of pointers, one pointer per matrix
  bool fast_sums = false;    // fp8 only: sums of 14 bits, as tensor cores add, instead of f32
  // For cublas, instead of a product: the matrices of a group; for each member a, b, c if present, and d.
  std::vector<TensorDescription> group = {};
  std::size_t slots_of_member = 0;
  std::optional<ConvolutionProblem> convolution = {};  // for cudnn, instead of a product
  bool same_layout = false;                            // for cudnn: only in the problem's layout
  std::string python = {};                             // for torch: path of Python, or its name in PATH
};

// The algorithm that a library used, if it reports one; fields are empty otherwise.
struct PeerAlgorithm {
  std::string interface;     // "graph", "legacy"; for PyTorch "eager", "compiled"
  std::string engine;        // "engine 62 k2=10", "winograd_nonfused"
  std::string layout;        // "nhwc"; "nchw padded": x is part of an array that holds the padding as zeros
  std::string text() const;  // "graph engine 62 k2=10 nhwc"
};

struct PeerTimes {
  double minimum = 0, median = 0;  // seconds per call
  long long samples = 0;
};

// An algorithm offered by a library's heuristics, with its time or the reason why it was excluded.
struct PeerTrial {
  PeerAlgorithm algorithm;
  std::size_t workspace_bytes = 0;
  double tried_seconds = 0,
         measured_seconds = 0;  // 0 if not run; only those close to the fastest are measured
  std::string reason = {};      // empty if it took part
};

// A peer in another process, which sleeps between slices.
class TimedPeer {
 public:
  virtual ~TimedPeer() = default;
  virtual std::string const& version() const = 0;
  // Runs for about `seconds`; 0: until warm. Throws Error(unavailable) if the process has exited.
  virtual PeerTimes time(double seconds) = 0;
};

// A CPU library, for single products.
class PeerProcess final : public TimedPeer {
 public:
  explicit PeerProcess(PeerProblem const& problem);  // throws Error(unavailable) with the peer's reason
  std::string const& version() const override { return version_; }
  PeerTimes time(double seconds) override;

 private:
  std::string peer_, version_;
  PipedProcess process_;
};

// The peer's process: answers on stdout until stdin is closed.
void serve_peer(PeerProblem const& problem);

}  // namespace cosmati::cli
