// A peer library. On the host it is timed in a separate process, because two threading runtimes in one
// process slow each other down.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/peers/piped_process.h"
#include "cosmati/core/number.h"
#include "cosmati/ops/convolution.h"

namespace cosmati::cli {

// How a matrix lies in memory; 0: without gaps, at an address that is a multiple of 256.
struct PeerMatrix {
  Index leading = 0, batch_stride = 0;  // elements from column to column, from matrix to matrix
  int alignment = 0;                    // bytes
};

// The product that a peer times: column-major as in BLAS. On the host a * b alone.
struct PeerProblem {
  std::string peer;    // "onednn", "openblas"; on a GPU "cublaslt", "cublas", "cudnn"; on both "torch"
  std::string layout;  // "nn"
  DataType type = DataType::f32;
  Index m = 0, n = 0, k = 0, batch = 1;
  long long buffers = 1;  // sets of operands, used in turn
  int threads = 1;
  DataType result = DataType::f32, sum = DataType::f32;  // of c and d; in which products are summed
  double alpha = 1, beta = 0;
  PeerMatrix place_a = {}, place_b = {}, place_d = {};  // on a GPU alone; c lies as d
  std::optional<DataType> type_b = {};                  // of b where that is not `type`; on a GPU alone
  bool by_pointers = false;  // on a GPU: a batch as arrays of pointers, one for each matrix
  bool fast_sums = false;    // of fp8: with 14 bits, as the tensor cores add, instead of f32
  // For cublas, instead of a product: the matrices of a group, for each member a, b, c if present, and d.
  std::vector<TensorDescription> group = {};
  std::size_t slots_of_member = 0;
  std::optional<ConvolutionProblem> convolution = {};  // of cudnn, in the place of a product
  std::string python = {};                             // of torch: the file, or its name in PATH
};

// The algorithm that a library used, if it tells; empty fields otherwise.
struct PeerAlgorithm {
  std::string interface;     // "graph", "legacy"; of PyTorch "eager", "compiled"
  std::string engine;        // "engine 62 k2=10", "winograd_nonfused"
  std::string layout;        // "nhwc"; "nchw padded": in an array that holds zeros around x
  std::string text() const;  // "graph engine 62 k2=10 nhwc"
};

struct PeerTimes {
  double least = 0, median = 0;  // seconds of a call
  long long samples = 0;
};

// An algorithm that a library's heuristics offered: how long it took, or why it was left out.
struct PeerTrial {
  PeerAlgorithm algorithm;
  std::size_t workspace_bytes = 0;
  double tried_seconds = 0, measured_seconds = 0;  // 0: it was not; measured are those near the fastest
  std::string reason = {};                         // empty: it could take part
};

// A peer in another process, which sleeps between slices.
class TimedPeer {
 public:
  virtual ~TimedPeer() = default;
  virtual std::string const& version() const = 0;
  // Calls for about `seconds`; 0: until it is warm. Throws Error(unavailable) if the process has ended.
  virtual PeerTimes time(double seconds) = 0;
};

// A library of the host, for single products.
class PeerProcess final : public TimedPeer {
 public:
  explicit PeerProcess(PeerProblem const& problem);  // throws Error(unavailable) with the peer's reason
  std::string const& version() const override { return version_; }
  PeerTimes time(double seconds) override;

 private:
  std::string peer_, version_;
  PipedProcess process_;
};

// The other side: answers on stdout until stdin ends.
void serve_peer(PeerProblem const& problem);

}  // namespace cosmati::cli
