// PyTorch beside ours: a Python process that runs cli/bench/peers/torch_peer.py, on the host or on the same
// GPU.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/peers/peer.h"
#include "cli/operations/task.h"
#include "cli/verify/verification.h"

namespace cosmati::cli {

std::string_view torch_script();  // cli/bench/peers/torch_peer.py

class TorchProcess;

// One problem by PyTorch's fastest mode: eager, on a GPU also compiled; convolutions in either layout. The
// first set of inputs equals ours, the other sets are permutations. One process per Python is kept while this
// program runs, since importing PyTorch takes seconds.
class TorchPeer final : public TimedPeer {
 public:
  struct Rules {
    std::string python;  // the file, or its name in PATH
    long long sets = 1;  // of operands, used in turn
    bool graphs = true;  // on a GPU: CUDA graphs of calls, not single ones
  };

  // `inputs` lie on the host, in the order of the task's slots; those of outputs are not read. Throws
  // Error(unavailable) where that Python does not start or has no PyTorch, or none for this device.
  TorchPeer(Task& task, Device const& device, PlanOptions const& options, Rules const& rules,
            std::span<void const* const> inputs);

  std::string const& refusal() const { return refusal_; }  // empty: it computes this problem
  std::string const& version() const override;
  PeerAlgorithm const& algorithm() const { return algorithm_; }
  int tried() const { return tried_; }  // of its ways
  PeerTimes time(double seconds) override;
  void forget_graphs();  // single calls from now on

  // Whether its outputs for the first set are what ours are. `tensors`: ours on the host in the order of the
  // slots, with the inputs. Problems of at most `most_verified` operations are judged as verify does, whole;
  // of others some elements are compared with ours (peer_tolerance).
  Verdict verdict(std::span<void const* const> tensors, double most_verified);

 private:
  Task& task_;
  Backend backend_;
  std::shared_ptr<TorchProcess> process_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> offsets_;  // of the slots in the memory that both processes share
  std::string refusal_;
  PeerAlgorithm algorithm_;
  int tried_ = 0;
};

}  // namespace cosmati::cli
