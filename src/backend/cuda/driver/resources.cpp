// Contexts, streams, events, memory and graphs through the driver API.
#include "src/backend/cuda/driver/resources.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "cosmati/ops/error.h"

namespace cosmati::cuda {
namespace {

constexpr int max_devices = 64;

// Lock-free once the context has been retained.
CUctx_st* primary_context(int ordinal) {
  static std::array<std::atomic<CUctx_st*>, max_devices> contexts{};
  static std::mutex mutex;
  if (ordinal < 0 || ordinal >= max_devices)
    throw Error(ErrorCode::bad_request, "device " + std::to_string(ordinal) +
                                            " is invalid; valid values: 0 to " +
                                            std::to_string(max_devices - 1));
  auto& slot = contexts[static_cast<std::size_t>(ordinal)];
  if (CUctx_st* const found = slot.load(std::memory_order_acquire)) return found;
  std::lock_guard const lock(mutex);
  if (CUctx_st* const found = slot.load(std::memory_order_relaxed)) return found;
  Ordinal device = 0;
  driver().cuDeviceGet(&device, ordinal);
  CUctx_st* context = nullptr;
  driver().cuDevicePrimaryCtxRetain(&context, device);
  slot.store(context, std::memory_order_release);
  return context;
}

template <class Destroy>
void give_back(int ordinal, Destroy const& destroy) noexcept {
  try {
    Current const current(ordinal);
    destroy(driver());
  } catch (Error const&) {
    // The driver has been shut down, which freed its resources.
  }
}

}  // namespace

Current::Current(int ordinal) {
  CUctx_st* const wanted = primary_context(ordinal);
  driver().cuCtxGetCurrent(&former_);
  if (former_ == wanted) return;
  driver().cuCtxSetCurrent(wanted);
  changed_ = true;
}

Current::~Current() {
  if (changed_) driver().cuCtxSetCurrent.quietly(former_);
}

Event::Event(int ordinal, bool timing) : Owner(ordinal, nullptr) {
  Current const current(ordinal);
  driver().cuEventCreate(&handle_, timing ? 0 : event_without_timing);
}

Event::~Event() {
  if (handle_ != nullptr)
    give_back(ordinal_, [&](Driver const& here) { here.cuEventDestroy_v2.quietly(handle_); });
}

void Event::record(Stream stream) {
  Current const current(ordinal_);
  driver().cuEventRecord(handle_, handle_of(stream));
}

void Event::wait() const {
  Current const current(ordinal_);
  driver().cuEventSynchronize(handle_);
}

double Event::seconds_since(Event const& start) const {
  Current const current(ordinal_);
  float milliseconds = 0;
  driver().cuEventElapsedTime_v2(&milliseconds, start.handle_, handle_);
  return static_cast<double>(milliseconds) * 1e-3;
}

OwnedStream::OwnedStream(int ordinal) : Owner(ordinal, nullptr) {
  Current const current(ordinal);
  driver().cuStreamCreate(&handle_, stream_non_blocking);
}

OwnedStream::~OwnedStream() {
  if (handle_ != nullptr)
    give_back(ordinal_, [&](Driver const& here) { here.cuStreamDestroy_v2.quietly(handle_); });
}

void OwnedStream::wait() const { cuda::wait(ordinal_, handle_); }

void OwnedStream::wait_for(Event const& event) {
  Current const current(ordinal_);
  driver().cuStreamWaitEvent(handle_, event.handle(), 0);
}

void wait(int ordinal, Stream stream) {
  Current const current(ordinal);
  driver().cuStreamSynchronize(handle_of(stream));
}

bool enable_peer_access(int from, int to) {
  constexpr auto already_enabled = static_cast<Result>(704);
  if (from == to) return false;
  Ordinal device = 0, peer = 0;
  driver().cuDeviceGet(&device, from);
  driver().cuDeviceGet(&peer, to);
  int can = 0;
  driver().cuDeviceCanAccessPeer(&can, device, peer);
  if (can == 0) return false;
  Current const current(from);
  Result const result = driver().cuCtxEnablePeerAccess.attempt(primary_context(to), 0);
  return result == Result::success || result == already_enabled;
}

void wait_for_device(int ordinal) {
  Current const current(ordinal);
  driver().cuCtxSynchronize();
}

DeviceBuffer::DeviceBuffer(int ordinal, std::size_t bytes) : Owner(ordinal, 0) {
  Current const current(ordinal);
  Result const result = driver().cuMemAlloc_v2.attempt(&handle_, std::max<std::size_t>(bytes, 1));
  if (result != Result::out_of_memory) {
    check("cuMemAlloc_v2", result);
    return;
  }
  std::size_t free = 0, total = 0;
  driver().cuMemGetInfo_v2(&free, &total);
  throw Error(ErrorCode::out_of_memory, "device " + std::to_string(ordinal) + " has no memory for " +
                                            std::to_string(bytes) + " bytes: " + std::to_string(free) +
                                            " of its " + std::to_string(total) + " bytes are free");
}

DeviceBuffer::~DeviceBuffer() {
  if (handle_ != 0) give_back(ordinal_, [&](Driver const& here) { here.cuMemFree_v2.quietly(handle_); });
}

PinnedBuffer::PinnedBuffer(int ordinal, std::size_t bytes) : Owner(ordinal, nullptr) {
  Current const current(ordinal);
  driver().cuMemHostAlloc(&handle_, std::max<std::size_t>(bytes, 1), host_memory_portable);
}

PinnedBuffer::~PinnedBuffer() {
  if (handle_ != nullptr)
    give_back(ordinal_, [&](Driver const& here) { here.cuMemFreeHost.quietly(handle_); });
}

void copy_to_device(int ordinal, void* to, void const* from, std::size_t bytes, Stream stream) {
  Current const current(ordinal);
  if (bytes > 0) driver().cuMemcpyHtoDAsync_v2(address_of(to), from, bytes, handle_of(stream));
}

void copy_to_host(int ordinal, void* to, void const* from, std::size_t bytes, Stream stream) {
  Current const current(ordinal);
  if (bytes > 0) driver().cuMemcpyDtoHAsync_v2(to, address_of(from), bytes, handle_of(stream));
}

void copy_on_device(int ordinal, void* to, void const* from, std::size_t bytes, Stream stream) {
  Current const current(ordinal);
  if (bytes > 0) driver().cuMemcpyDtoDAsync_v2(address_of(to), address_of(from), bytes, handle_of(stream));
}

void fill(int ordinal, void* address, unsigned char value, std::size_t bytes, Stream stream) {
  Current const current(ordinal);
  if (bytes > 0) driver().cuMemsetD8Async(address_of(address), value, bytes, handle_of(stream));
}

Graph::~Graph() {
  if (handle_ != nullptr)
    give_back(ordinal_, [&](Driver const& here) { here.cuGraphExecDestroy.quietly(handle_); });
}

void Graph::launch(Stream stream) const {
  Current const current(ordinal_);
  driver().cuGraphLaunch(handle_, handle_of(stream));
}

Capture::Capture(OwnedStream const& stream) : stream_(stream) {
  Current const current(stream.ordinal());
  driver().cuStreamBeginCapture_v2(stream.handle(), CaptureMode::thread_local_only);
}

Capture::~Capture() {
  if (!open_) return;
  give_back(stream_.ordinal(), [&](Driver const& here) {
    CUgraph_st* graph = nullptr;
    if (here.cuStreamEndCapture.attempt(stream_.handle(), &graph) == Result::success && graph != nullptr)
      here.cuGraphDestroy.quietly(graph);
  });
}

Graph Capture::finish() {
  Current const current(stream_.ordinal());
  open_ = false;
  CUgraph_st* graph = nullptr;
  driver().cuStreamEndCapture(stream_.handle(), &graph);
  CUgraphExec_st* executable = nullptr;
  Result const result = driver().cuGraphInstantiateWithFlags.attempt(&executable, graph, 0);
  driver().cuGraphDestroy.quietly(graph);
  check("cuGraphInstantiateWithFlags", result);
  return Graph(stream_.ordinal(), executable);
}

}  // namespace cosmati::cuda
