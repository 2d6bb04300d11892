// The functions of NCCL that Cosmati calls, on the memory of the fake driver: each rank of
// ncclAllReduce adds its values and waits for the other ranks. Communicators of 13 ranks fail.
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "src/parallel/nccl.h"

using cosmati::parallel::nccl::Operation;
using cosmati::parallel::nccl::Residence;
using cosmati::parallel::nccl::Status;
using cosmati::parallel::nccl::Type;
using cosmati::parallel::nccl::UniqueId;

namespace {

constexpr auto failure = static_cast<Status>(3);
constexpr unsigned first_own_operation = 5;  // lower numbers are the library's operations

struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<float> sum;
  int size = 0, arrived = 0, left = 0;
  unsigned long long meeting = 0;
  bool aborted = false;
};

std::shared_ptr<Clique> clique_of(UniqueId const& id) {
  static std::map<int, std::shared_ptr<Clique>> all;
  static std::mutex mutex;
  int number = 0;
  std::memcpy(&number, id.bytes, sizeof(number));
  std::lock_guard const lock(mutex);
  auto& known = all[number];
  if (!known) known = std::make_shared<Clique>();
  return known;
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  std::vector<float> scales;
};

extern "C" {

char const* ncclGetErrorString(Status) { return "internal error"; }
char const* ncclGetLastError(ncclComm*) { return "the fake refuses 13 ranks"; }

Status ncclGetUniqueId(UniqueId* id) {
  static int number = 0;
  ++number;
  std::memcpy(id->bytes, &number, sizeof(number));
  return Status::success;
}

Status ncclGroupStart() { return Status::success; }
Status ncclGroupEnd() { return Status::success; }

Status ncclCommInitRank(ncclComm** communicator, int size, UniqueId id, int rank) {
  if (size == 13) return failure;
  *communicator = new ncclComm{clique_of(id), rank, {}};
  (*communicator)->clique->size = size;
  return Status::success;
}

Status ncclCommDestroy(ncclComm* communicator) {
  delete communicator;
  return Status::success;
}

// Like the library's, this call releases waiting ranks.
Status ncclCommAbort(ncclComm* communicator) {
  {
    std::lock_guard const lock(communicator->clique->mutex);
    communicator->clique->aborted = true;
  }
  communicator->clique->changed.notify_all();
  return ncclCommDestroy(communicator);
}

Status ncclRedOpCreatePreMulSum(Operation* operation, void* scalar, Type type, Residence residence,
                                ncclComm* communicator) {
  if (type != Type::f32 || residence != Residence::host_immediate) return failure;
  *operation = static_cast<Operation>(first_own_operation + communicator->scales.size());
  communicator->scales.push_back(*static_cast<float*>(scalar));
  return Status::success;
}

Status ncclAllReduce(void const* from, void* to, std::size_t count, Type type, Operation operation,
                     ncclComm* communicator, CUstream_st*) {
  if (type != Type::f32) return failure;
  auto const number = static_cast<unsigned>(operation);
  float const scale = operation == Operation::sum ? 1 : communicator->scales.at(number - first_own_operation);
  std::shared_ptr<Clique> const clique =
      communicator->clique;  // keeps the clique alive if the communicator is destroyed
  std::unique_lock lock(clique->mutex);
  clique->changed.wait(lock, [&] { return clique->left == 0 || clique->aborted; });
  if (clique->arrived == 0) clique->sum.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) clique->sum.at(i) += scale * static_cast<float const*>(from)[i];
  auto const now = clique->meeting;
  if (++clique->arrived == clique->size) {
    clique->arrived = 0;
    clique->left = clique->size;
    ++clique->meeting;
    clique->changed.notify_all();
  }
  clique->changed.wait(lock, [&] { return clique->meeting != now || clique->aborted; });
  if (clique->aborted) return failure;
  std::memcpy(to, clique->sum.data(), count * sizeof(float));
  if (--clique->left == 0) clique->changed.notify_all();
  return Status::success;
}

}  // extern "C"
