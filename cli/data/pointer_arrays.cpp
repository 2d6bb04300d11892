// Arrays of pointers to the matrices of a batch.
#include "cli/data/pointer_arrays.h"

#include <map>
#include <numeric>

#include "cosmati/ops/memory.h"

namespace cosmati::cli {
namespace {

class ThroughPointers final : public PreparedTask {
 public:
  ThroughPointers(std::unique_ptr<PreparedTask> prepared, Device device,
                  std::vector<TensorDescription> tensors)
      : prepared_(std::move(prepared)), device_(std::move(device)), tensors_(std::move(tensors)) {}

  void run(std::span<void* const> pointers, void* workspace, Stream stream) const override {
    std::vector<void*> arrays(pointers.begin(), pointers.end());
    for (std::size_t i = 0; i < tensors_.size(); ++i) arrays[i] = array_of(i, pointers[i]);
    prepared_->run(arrays, workspace, stream);
  }
  Choice const& choice() const override { return prepared_->choice(); }

 private:
  void* array_of(std::size_t number, void* data) const {
    auto const known = arrays_.find({number, data});
    if (known != arrays_.end()) return known->second.data();
    TensorDescription const& tensor = tensors_[number];
    std::vector<void*> list;
    for (Index i = 0; i < tensor.extent(0); ++i)
      list.push_back(static_cast<std::byte*>(data) + i * tensor.layout.stride[0] * size_of(tensor.type));
    std::size_t const bytes = list.size() * sizeof(void*);
    DeviceMemory memory(device_, bytes);
    memory.upload(list.data(), bytes);
    return arrays_.emplace(std::pair(number, data), std::move(memory)).first->second.data();
  }

  std::unique_ptr<PreparedTask> prepared_;
  Device device_;
  std::vector<TensorDescription> tensors_;
  mutable std::map<std::pair<std::size_t, void*>, DeviceMemory> arrays_;
};

}  // namespace

std::unique_ptr<PreparedTask> through_pointers(std::unique_ptr<PreparedTask> prepared, Device const& device,
                                               std::vector<TensorDescription> tensors) {
  return std::make_unique<ThroughPointers>(std::move(prepared), device, std::move(tensors));
}

int alignment_of_matrices(TensorDescription const& tensor) {
  Index const stride = tensor.extent(0) > 1 ? tensor.layout.stride[0] * size_of(tensor.type) : 0;
  return static_cast<int>(std::gcd(static_cast<Index>(tensor.alignment), stride));
}

}  // namespace cosmati::cli
