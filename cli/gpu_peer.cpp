// The libraries that are timed on a GPU.
#include "cli/gpu_peer.h"

#include "cli/cublaslt_peer.h"
#include "cli/cudnn_peer.h"

namespace cosmati::cli {
namespace {

class CublasLt final : public GpuPeer {
 public:
  CublasLt(PeerProblem const& problem, GpuOperands const& operands, int ordinal)
      : library_(problem, ordinal), operands_(operands), fast_sums_(problem.fast_sums) {}

  std::string version() const override {
    return cublaslt::version() + (fast_sums_ ? ", fast accumulation" : "");
  }
  std::string const& refusal() const override { return library_.refusal(); }
  int algorithms() const override { return library_.algorithms(); }
  std::size_t workspace_bytes(int algorithm) const override { return library_.workspace_bytes(algorithm); }
  void run(int algorithm, std::size_t set, Stream stream) const override {
    auto const pointers = operands_.pointers(set);
    library_.run(algorithm, pointers[0], pointers[1], pointers.size() > 3 ? pointers[2] : nullptr,
                 pointers.back(), stream);
  }

 private:
  CublasLtPeer library_;
  GpuOperands const& operands_;
  bool fast_sums_;
};

}  // namespace

std::string PeerAlgorithm::text() const {
  std::string text;
  for (std::string const& word : {interface, engine, layout})
    if (!word.empty()) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::unique_ptr<GpuPeer> make_gpu_peer(PeerProblem const& problem, GpuOperands const& operands, int ordinal) {
  if (problem.convolution) return std::make_unique<CudnnPeer>(*problem.convolution, operands, ordinal);
  return std::make_unique<CublasLt>(problem, operands, ordinal);
}

}  // namespace cosmati::cli
