// Creates the peer libraries timed on a GPU.
#include "cli/bench/peers/gpu_peer.h"

#include <vector>

#include "cli/bench/peers/cublas_group.h"
#include "cli/bench/peers/cublaslt_peer.h"
#include "cli/bench/peers/cudnn_peer.h"
#include "cosmati/core/number.h"

namespace cosmati::cli {
namespace {

class CublasLt final : public GpuPeer {
 public:
  CublasLt(PeerProblem const& problem, GpuOperands const& operands, int ordinal)
      : library_(problem, ordinal), operands_(operands), fast_sums_(problem.fast_sums) {
    if (problem.by_pointers && library_.refusal().empty()) make_arrays(problem, ordinal);
  }

  std::string version() const override {
    return cublaslt::version() + (fast_sums_ ? ", fast accumulation" : "");
  }
  std::string const& refusal() const override { return library_.refusal(); }
  int algorithms() const override { return library_.algorithms(); }
  std::size_t workspace_bytes(int algorithm) const override { return library_.workspace_bytes(algorithm); }
  void run(int algorithm, std::size_t set, Stream stream) const override {
    std::vector<void*> pointers(operands_.pointers(set).begin(), operands_.pointers(set).end());
    for (std::size_t i = 0; !arrays_.empty() && i < pointers.size(); ++i)
      pointers[i] = arrays_[set * pointers.size() + i].data();
    library_.run(algorithm, pointers[0], pointers[1], pointers.size() > 3 ? pointers[2] : nullptr,
                 pointers.back(), stream);
  }

 private:
  // One array per set and operand: a, b, c if present, d.
  void make_arrays(PeerProblem const& problem, int ordinal) {
    for (std::size_t set = 0; set < operands_.sets(); ++set) {
      auto const pointers = operands_.pointers(set);
      for (std::size_t i = 0; i < pointers.size(); ++i) {
        bool const is_b = i == 1, is_result = i > 1;
        PeerMatrix const& place = is_result ? problem.place_d : is_b ? problem.place_b : problem.place_a;
        Index const elements = is_result ? problem.m * problem.n
                               : is_b    ? problem.k * problem.n
                                         : problem.m * problem.k;
        Index const stride = place.batch_stride > 0 ? place.batch_stride : elements;
        DataType const type = is_result ? problem.result
                              : is_b    ? problem.type_b.value_or(problem.type)
                                        : problem.type;
        std::vector<void*> list;
        for (Index j = 0; j < problem.batch; ++j)
          list.push_back(static_cast<std::byte*>(pointers[i]) + j * stride * size_of(type));
        std::size_t const bytes = list.size() * sizeof(void*);
        arrays_.emplace_back(ordinal, bytes);
        cuda::copy_to_device(ordinal, arrays_.back().data(), list.data(), bytes, nullptr);
        cuda::wait(ordinal, nullptr);
      }
    }
  }

  CublasLtPeer library_;
  GpuOperands const& operands_;
  bool fast_sums_;
  std::vector<cuda::DeviceBuffer> arrays_;  // pointer arrays of a batch by pointers
};

}  // namespace

std::string PeerAlgorithm::text() const {
  std::string text;
  for (std::string const& word : {interface, engine, layout})
    if (!word.empty()) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::unique_ptr<GpuPeer> make_gpu_peer(PeerProblem const& problem, GpuOperands const& operands, int ordinal) {
  if (problem.convolution)
    return std::make_unique<CudnnPeer>(*problem.convolution, operands, ordinal, problem.same_layout);
  if (!problem.group.empty()) return std::make_unique<CublasGroup>(problem, operands, ordinal);
  return std::make_unique<CublasLt>(problem, operands, ordinal);
}

}  // namespace cosmati::cli
