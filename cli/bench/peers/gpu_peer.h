// A peer library timed on a GPU in the same process.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/peers/peer.h"
#include "cli/data/gpu_operands.h"

namespace cosmati::cli {

class GpuPeer {
 public:
  virtual ~GpuPeer() = default;
  virtual std::string version() const = 0;
  virtual std::string const& refusal() const = 0;  // empty if it computes this problem
  // The number of algorithms to time; number 0 is the library's first choice.
  virtual int algorithms() const = 0;
  virtual std::size_t workspace_bytes(int algorithm) const = 0;
  virtual PeerAlgorithm algorithm(int) const { return {}; }
  // Offered algorithms that are excluded.
  virtual std::vector<PeerTrial> left_out() const { return {}; }
  // Enqueues on the stream, with the operands of that set. Throws Error(system) if the call fails.
  virtual void run(int algorithm, std::size_t set, Stream stream) const = 0;
  // Copies the result of a run on the default stream into our layout, if the layouts differ.
  virtual void copy_result(int, std::size_t) const {}
  // The permitted distance between its result and ours, relative to the root mean square of ours, for
  // problems of which the reference cannot compute a sample. Empty: the reference verifies a sample.
  virtual std::optional<double> tolerance() const { return {}; }
};

// Throws Error(unavailable) if the library is not installed. The operands are those on which our kernel is
// timed; they outlive the peer.
std::unique_ptr<GpuPeer> make_gpu_peer(PeerProblem const& problem, GpuOperands const& operands, int ordinal);

}  // namespace cosmati::cli
