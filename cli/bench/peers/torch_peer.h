// PyTorch as a peer: a Python process that runs cli/bench/peers/torch_peer.py on the CPU or on the same GPU.
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

// Times one problem by PyTorch's fastest mode: eager and, on a GPU, compiled; convolutions in either layout.
// The first set of inputs equals ours, the other sets are permutations of it. One process per Python is kept
// while this program runs, since importing PyTorch takes seconds.
class TorchPeer final : public TimedPeer {
 public:
  struct Rules {
    std::string python;  // path, or name in PATH
    long long sets = 1;  // operand sets, used in rotation
    bool graphs = true;  // GPU only: CUDA graphs instead of single calls
  };

  // `inputs` are host pointers in the order of the task's slots; those of outputs are not read. Throws
  // Error(unavailable) if that Python does not start, has no PyTorch, or has none for this device.
  TorchPeer(Task& task, Device const& device, PlanOptions const& options, Rules const& rules,
            std::span<void const* const> inputs);

  std::string const& refusal() const { return refusal_; }  // empty if it computes this problem
  std::string const& version() const override;
  PeerAlgorithm const& algorithm() const { return algorithm_; }
  int tried() const { return tried_; }  // number of modes tried
  PeerTimes time(double seconds) override;
  void forget_graphs();  // switches to single calls

  // Compares its outputs for the first set with ours. `tensors` are our host arrays in the order of the
  // slots, inputs included. Problems of at most `max_verified` operations are judged completely, as verify
  // does; for others a sample of the elements is compared with ours (peer_tolerance).
  Verdict verdict(std::span<void const* const> tensors, double max_verified);

 private:
  Task& task_;
  Backend backend_;
  std::shared_ptr<TorchProcess> process_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> offsets_;  // offsets of the slots in the shared memory
  std::string refusal_;
  PeerAlgorithm algorithm_;
  int tried_ = 0;
};

}  // namespace cosmati::cli
