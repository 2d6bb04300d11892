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
  virtual std::string const& refusal() const = 0;  // empty: it computes this problem
  // Number of algorithms to time; number 0 is the library's first choice.
  virtual int algorithms() const = 0;
  virtual std::size_t workspace_bytes(int algorithm) const = 0;
  virtual PeerAlgorithm algorithm(int) const { return {}; }
  // Offered algorithms that are excluded.
  virtual std::vector<PeerTrial> left_out() const { return {}; }
  // Enqueues on the stream, on the operands of that set. Throws Error(system) if the library refuses.
  virtual void run(int algorithm, std::size_t set, Stream stream) const = 0;
  // Copies the result of a run on the default stream into our layout, if it differs.
  virtual void bring_back(int, std::size_t) const {}
  // How far its result may lie from ours, in parts of the root of ours' mean square: for problems that no
  // reference computes on a sample. Nothing: a reference does.
  virtual std::optional<double> tolerance() const { return {}; }
};

// Throws Error(unavailable) if the library is not here. The operands are those that ours is timed on; they
// outlive the peer.
std::unique_ptr<GpuPeer> make_gpu_peer(PeerProblem const& problem, GpuOperands const& operands, int ordinal);

}  // namespace cosmati::cli
