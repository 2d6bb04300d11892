// Copies host arrays to a GPU and back.
#include "cli/data/staged.h"

#include <cstdint>
#include <utility>

#include "cosmati/ops/memory.h"

namespace cosmati::cli {
namespace {

constexpr std::size_t band = 512;
constexpr std::size_t granule = 64;  // the alignment of a Tensor

// One array in device memory, with the memory around it.
class StagedArray {
 public:
  StagedArray(Device const& device, Slot const& slot, void* host, std::size_t guard)
      : host_(static_cast<std::byte*>(host)),
        bytes_(static_cast<std::size_t>(slot.description.bytes())),
        guard_(slot.role == Role::input ? 0 : guard),
        written_(slot.role != Role::input),
        at_(band + reinterpret_cast<std::uintptr_t>(host) % granule),
        memory_(device, at_ + bytes_ + band) {
    memory_.fill(0xff);
    if (slot.role != Role::output || guard_ > 0)
      memory_.upload(host_ - guard_, bytes_ + 2 * guard_, at_ - guard_);
  }

  void* data() const { return static_cast<std::byte*>(memory_.data()) + at_; }
  void download() const {
    if (written_) memory_.download(host_ - guard_, bytes_ + 2 * guard_, at_ - guard_);
  }

 private:
  std::byte* host_;
  std::size_t bytes_, guard_;
  bool written_;
  std::size_t at_;  // offset of the array in the device memory
  DeviceMemory memory_;
};

class StagedTask final : public PreparedTask {
 public:
  StagedTask(std::unique_ptr<PreparedTask> prepared, Device device, std::vector<Slot> slots,
             std::size_t guard)
      : prepared_(std::move(prepared)), device_(std::move(device)), slots_(std::move(slots)), guard_(guard) {}

  // Synchronous, regardless of the stream.
  void run(std::span<void* const> pointers, void* workspace, Stream) const override {
    (void)timed_run(pointers, workspace);
  }

  double timed_run(std::span<void* const> pointers, void* workspace) const override {
    std::vector<StagedArray> arrays;
    std::vector<void*> addresses;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      arrays.emplace_back(device_, slots_[i], pointers[i], guard_);
      addresses.push_back(arrays.back().data());
    }
    DeviceMemory scratch(device_, choice().workspace_bytes);
    scratch.upload(workspace, scratch.bytes());
    double const seconds = seconds_of([&] {
      prepared_->run(addresses, scratch.data());
      wait(device_);
    });
    for (StagedArray const& array : arrays) array.download();
    return seconds;
  }

  Choice const& choice() const override { return prepared_->choice(); }

 private:
  std::unique_ptr<PreparedTask> prepared_;
  Device device_;
  std::vector<Slot> slots_;
  std::size_t guard_;
};

}  // namespace

std::unique_ptr<PreparedTask> for_host_arrays(std::unique_ptr<PreparedTask> prepared, Device const& device,
                                              std::vector<Slot> slots, std::size_t guard) {
  if (device.backend != Backend::cuda) return prepared;
  if (guard > band)
    throw Error(ErrorCode::bad_request, "guard bands of " + std::to_string(guard) + " bytes; at most " +
                                            std::to_string(band) + " fit");
  return std::make_unique<StagedTask>(std::move(prepared), device, std::move(slots), guard);
}

}  // namespace cosmati::cli
