// Opens NCCL and uses it for sums. NCCL reads its environment variables itself.
#include "src/parallel/nccl.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "cosmati/ops/error.h"
#include "src/backend/cuda/driver/resources.h"

namespace cosmati::parallel::nccl {
namespace {

constexpr char const* folders[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};

void* open_any(std::string& reason) {
  char const* const named = std::getenv("COSMATI_NCCL");
  bool const chosen = named != nullptr && *named != '\0';
  for (char const* const folder : folders) {
    std::string const file = chosen ? named : std::string(folder) + "libnccl.so.2";
    if (void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    if (reason.empty()) reason = dlerror();
    if (chosen) break;
  }
  return nullptr;
}

Library load() {
  constexpr char const* what =
      "summing the gradients of several GPUs requires NCCL (libnccl.so.2), which was not found: ";
  std::string reason;
  void* const handle = open_any(reason);
  if (handle == nullptr) throw Error(ErrorCode::unavailable, what + reason);
  Library result;
  auto const find = [&](char const* name) {
    void* const found = dlsym(handle, name);
    if (found == nullptr)
      throw Error(ErrorCode::unavailable, what + ("it has no function " + std::string(name)));
    return found;
  };
#define COSMATI_NCCL_BIND(name, returned, parameters) \
  result.name = reinterpret_cast<returned(*) parameters>(find(#name));
  COSMATI_NCCL(COSMATI_NCCL_BIND)
#undef COSMATI_NCCL_BIND
  return result;
}

void check(char const* call, Status status, ncclComm* communicator = nullptr) {
  if (status == Status::success) return;
  std::string text = std::string(call) + ": " + library().ncclGetErrorString(status);
  if (char const* const last = library().ncclGetLastError(communicator); last != nullptr && *last != '\0')
    text += std::string(" (") + last + ")";
  throw Error(ErrorCode::system, text);
}

class NcclAllReduce final : public AllReduce {
 public:
  NcclAllReduce(int ordinal, ncclComm* communicator) : ordinal_(ordinal), communicator_(communicator) {}
  ~NcclAllReduce() override {
    if (ncclComm* const mine = communicator_.exchange(nullptr)) give_back(library().ncclCommDestroy, mine);
  }
  NcclAllReduce(NcclAllReduce const&) = delete;
  NcclAllReduce& operator=(NcclAllReduce const&) = delete;

  void sum(float* data, std::size_t count, double weight, Stream stream) override {
    std::lock_guard const lock(enqueuing_);
    ncclComm* const mine = communicator_;
    if (mine == nullptr) throw Error(ErrorCode::system, "another device failed during a sum");
    cuda::Current const current(ordinal_);
    check("ncclAllReduce",
          library().ncclAllReduce(data, data, count, Type::f32, weighted(weight, mine), mine,
                                  cuda::handle_of(stream)),
          mine);
  }
  // Called by another device's thread. Waits up to a second for a call that is being enqueued, which normally
  // takes microseconds. A call that waits for a failed device, as the first sum may, ends only by the abort
  // itself.
  void abort() noexcept override {
    std::unique_lock const lock(enqueuing_, std::chrono::seconds(1));
    if (ncclComm* const mine = communicator_.exchange(nullptr)) give_back(library().ncclCommAbort, mine);
  }

 private:
  void give_back(Status (*function)(ncclComm*), ncclComm* communicator) const noexcept {
    try {
      cuda::Current const current(ordinal_);
      function(communicator);
    } catch (Error const&) {
      // The driver has been shut down, which freed its resources.
    }
  }
  // NCCL operations live as long as the communicator, so they are created once per weight.
  Operation weighted(double weight, ncclComm* communicator) {
    if (weight == 1) return Operation::sum;
    auto const scalar = static_cast<float>(weight);
    auto const known = operations_.find(scalar);
    if (known != operations_.end()) return known->second;
    Operation made{};
    float copy = scalar;
    check(
        "ncclRedOpCreatePreMulSum",
        library().ncclRedOpCreatePreMulSum(&made, &copy, Type::f32, Residence::host_immediate, communicator),
        communicator);
    return operations_[scalar] = made;
  }

  int ordinal_;
  std::timed_mutex enqueuing_;
  std::atomic<ncclComm*> communicator_;
  std::map<float, Operation> operations_;
};

}  // namespace

Library const& library() {
  static Library const one = load();
  return one;
}

std::vector<std::unique_ptr<AllReduce>> make_all_reduce(std::vector<Device> const& devices,
                                                        ProcessGroup* group) {
  Library const& here = library();
  int const own = static_cast<int>(devices.size()), rank = group == nullptr ? 0 : group->rank(),
            processes = group == nullptr ? 1 : group->size();
  UniqueId id{};
  if (rank == 0) check("ncclGetUniqueId", here.ncclGetUniqueId(&id));
  if (group != nullptr) group->broadcast(&id, sizeof(id));
  std::vector<ncclComm*> communicators(devices.size(), nullptr);
  check("ncclGroupStart", here.ncclGroupStart());
  for (int i = 0; i < own; ++i) {
    cuda::Current const current(devices[static_cast<std::size_t>(i)].gpu.ordinal);
    check("ncclCommInitRank", here.ncclCommInitRank(&communicators[static_cast<std::size_t>(i)],
                                                    own * processes, id, own * rank + i));
  }
  check("ncclGroupEnd", here.ncclGroupEnd());
  std::vector<std::unique_ptr<AllReduce>> parts;
  for (std::size_t i = 0; i < devices.size(); ++i)
    parts.push_back(std::make_unique<NcclAllReduce>(devices[i].gpu.ordinal, communicators[i]));
  return parts;
}

}  // namespace cosmati::parallel::nccl
