// The functions of libcuda.so.1 that Cosmati uses, as in a driver of CUDA 12.2: cuFuncLoad and
// cuEventElapsedTime_v2 are newer. COSMATI_FAKE_INIT: the result of cuInit; COSMATI_FAKE_DEVICES: the number
// of devices (1).
#include "tests/cuda/fake_libcuda.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "src/backend/cuda/driver/driver.h"

using cosmati::cuda::CaptureMode;
using cosmati::cuda::DeviceAddress;
using cosmati::cuda::DeviceAttribute;
using cosmati::cuda::FunctionAttribute;
using cosmati::cuda::Ordinal;
using cosmati::cuda::Result;
using Work = std::function<void()>;

struct CUctx_st {
  int ordinal = 0;
};
struct CUmod_st {
  int unused = 0;
};
struct CUfunc_st {
  std::string name;
  int dynamic_shared_bytes = 0;
};
struct CUstream_st {
  bool capturing = false;
  std::vector<Work> captured;
};
struct CUevent_st {
  bool recorded = false;
  double milliseconds = 0;
};
struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};

namespace {

constexpr auto invalid_context = static_cast<Result>(201);
constexpr auto invalid_handle = static_cast<Result>(400);
constexpr std::size_t memory_of_device = std::size_t{1} << 30;
constexpr int shared_bytes_of_block = 232448;

struct State {
  CUctx_st contexts[4] = {{0}, {1}, {2}, {3}};
  std::vector<CUctx_st*> contexts_below;
  std::map<DeviceAddress, std::size_t> memory;  // address -> bytes
  std::set<void*> handles;                      // streams, events, modules, graphs, pinned memory
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
  std::map<std::string, fake::Kernel> kernels;
  std::map<std::string, Result> failures;
  std::vector<fake::Launch> launches;
  double milliseconds = 0;  // total duration of the kernels run so far
  bool refuses_captures = false;
};

// Holds the lock for one expression: threads of a test use different devices but share this state.
class LockedState {
 public:
  explicit LockedState(State& state) : state_(state), lock_(state.mutex) {}
  State* operator->() const { return &state_; }

 private:
  State& state_;
  std::unique_lock<std::recursive_mutex> lock_;
};

LockedState state() {
  static State* const one = new State;  // outlives all test objects
  return LockedState(*one);
}

thread_local CUctx_st* current = nullptr;

int environment(char const* name, int otherwise) {
  char const* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}
int device_count() { return environment("COSMATI_FAKE_DEVICES", 1); }

// A failure requested by the test, or a missing context.
Result refusal(char const* function, bool needs_context = true) {
  auto const found = state()->failures.find(function);
  if (found != state()->failures.end()) {
    Result const result = found->second;
    state()->failures.erase(found);
    return result;
  }
  return needs_context && current == nullptr ? invalid_context : Result::success;
}

template <class Object>
Result create(char const* function, Object** handle) {
  if (Result const result = refusal(function); result != Result::success) return result;
  *handle = new Object;
  state()->handles.insert(*handle);
  return Result::success;
}

template <class Object>
Result destroy(char const* function, Object* handle) {
  if (Result const result = refusal(function); result != Result::success) return result;
  if (state()->handles.erase(handle) == 0) return invalid_handle;
  delete handle;
  return Result::success;
}

bool is_device_memory(DeviceAddress address, std::size_t bytes) {
  auto after = state()->memory.upper_bound(address);
  if (after == state()->memory.begin()) return false;
  --after;
  return address + bytes <= after->first + after->second;
}

template <class Number>
Number* pointer_to(DeviceAddress address) {
  return reinterpret_cast<Number*>(address);
}

Result enqueue(char const* function, CUstream_st* stream, Work work) {
  if (Result const result = refusal(function); result != Result::success) return result;
  if (stream != nullptr && !state()->handles.contains(stream)) return invalid_handle;
  if (stream != nullptr && stream->capturing)
    stream->captured.push_back(std::move(work));
  else
    work();
  return Result::success;
}

}  // namespace

namespace fake {

void set_kernel(std::string const& name, Kernel kernel) { state()->kernels[name] = kernel; }
std::vector<Launch> const& launches() { return state()->launches; }
void take_milliseconds(double milliseconds) { state()->milliseconds += milliseconds; }
bool enqueue(void* stream, std::function<void()> work) {
  auto* const own = static_cast<CUstream_st*>(stream);
  if (own != nullptr && own->capturing && state()->refuses_captures) return false;
  return ::enqueue("a library", own, std::move(work)) == Result::success;
}
void refuse_captures(bool refuse) { state()->refuses_captures = refuse; }
void fail_next(std::string const& function, unsigned result) {
  state()->failures[function] = static_cast<Result>(result);
}
int handles() { return static_cast<int>(state()->handles.size()); }
int allocations() { return static_cast<int>(state()->memory.size()); }
void* current_context() { return current; }
void set_current_context(void* context) { current = static_cast<CUctx_st*>(context); }
void reset() {
  state()->launches.clear();
  state()->kernels.clear();
  state()->failures.clear();
  state()->refuses_captures = false;
}

}  // namespace fake

extern "C" {

Result cuInit(unsigned) { return static_cast<Result>(environment("COSMATI_FAKE_INIT", 0)); }

Result cuGetErrorName(Result result, char const** text) {
  *text = result == Result::no_device       ? "CUDA_ERROR_NO_DEVICE"
          : result == Result::out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY"
                                            : "CUDA_ERROR_OF_THE_FAKE";
  return Result::success;
}
Result cuGetErrorString(Result result, char const** text) {
  *text = result == Result::no_device ? "no CUDA-capable device is detected" : "the fake driver refuses";
  return Result::success;
}
Result cuDriverGetVersion(int* version) {
  *version = environment("COSMATI_FAKE_CUDA_VERSION", 12020);
  return Result::success;
}

Result cuDeviceGetCount(int* count) {
  *count = device_count();
  return refusal("cuDeviceGetCount", false);
}
Result cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < device_count() ? Result::success : Result::invalid_device;
}
Result cuDeviceGetName(char* name, int length, int) {
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(length));
  return Result::success;
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = memory_of_device;
  return Result::success;
}
Result cuDeviceGetAttribute(int* value, DeviceAttribute attribute, int) {
  static std::map<DeviceAttribute, int> const values{
      {DeviceAttribute::clock_kilohertz, 1980000},
      {DeviceAttribute::multiprocessors, 132},
      {DeviceAttribute::memory_clock_kilohertz, 3201000},
      {DeviceAttribute::memory_bus_bits, 6144},
      {DeviceAttribute::l2_bytes, 62914560},
      {DeviceAttribute::threads_per_multiprocessor, 2048},
      {DeviceAttribute::capability_major, 9},
      {DeviceAttribute::capability_minor, 0},
      {DeviceAttribute::shared_bytes_per_multiprocessor, 233472},
      {DeviceAttribute::registers_per_multiprocessor, 65536},
      {DeviceAttribute::shared_bytes_per_block, shared_bytes_of_block},
      {DeviceAttribute::blocks_per_multiprocessor, 32}};
  auto const found = values.find(attribute);
  if (found == values.end()) return Result::invalid_value;
  *value = found->second;
  return Result::success;
}

Result cuDevicePrimaryCtxRetain(CUctx_st** context, int device) {
  *context = &state()->contexts[device];
  return refusal("cuDevicePrimaryCtxRetain", false);
}
Result cuCtxGetCurrent(CUctx_st** context) {
  *context = current;
  return Result::success;
}
Result cuCtxSetCurrent(CUctx_st* context) {
  current = context;
  return Result::success;
}
Result cuCtxPushCurrent_v2(CUctx_st* context) {
  state()->contexts_below.push_back(current);
  current = context;
  return Result::success;
}
Result cuCtxPopCurrent_v2(CUctx_st** context) {
  *context = current;
  current = state()->contexts_below.back();
  state()->contexts_below.pop_back();
  return Result::success;
}
Result cuDevicePrimaryCtxRelease_v2(int) { return Result::success; }
Result cuPointerGetAttribute(int* value, int, DeviceAddress) {
  *value = 0;  // the ordinal of the device
  return Result::success;
}
Result cuDeviceCanAccessPeer(int* can, Ordinal, Ordinal) {
  *can = 0;
  return Result::success;
}
Result cuCtxEnablePeerAccess(CUctx_st*, unsigned) { return Result::success; }
Result cuCtxSynchronize() { return refusal("cuCtxSynchronize"); }

Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *total = memory_of_device;
  *free = memory_of_device;
  for (auto const& [address, bytes] : state()->memory) *free -= bytes;
  return refusal("cuMemGetInfo_v2");
}
Result cuMemAlloc_v2(DeviceAddress* address, std::size_t bytes) {
  if (Result const result = refusal("cuMemAlloc_v2"); result != Result::success) return result;
  std::size_t free = 0, total = 0;
  cuMemGetInfo_v2(&free, &total);
  if (bytes == 0) return Result::invalid_value;
  if (bytes > free) return Result::out_of_memory;
  *address = reinterpret_cast<DeviceAddress>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  state()->memory[*address] = bytes;
  return Result::success;
}
Result cuMemFree_v2(DeviceAddress address) {
  if (Result const result = refusal("cuMemFree_v2"); result != Result::success) return result;
  if (state()->memory.erase(address) == 0) return Result::invalid_value;
  std::free(pointer_to<void>(address));
  return Result::success;
}
Result cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  if (Result const result = refusal("cuMemHostAlloc"); result != Result::success) return result;
  *address = std::malloc(bytes);
  state()->handles.insert(*address);
  return Result::success;
}
Result cuMemFreeHost(void* address) {
  if (Result const result = refusal("cuMemFreeHost"); result != Result::success) return result;
  if (state()->handles.erase(address) == 0) return Result::invalid_value;
  std::free(address);
  return Result::success;
}

Result cuMemcpyHtoDAsync_v2(DeviceAddress to, void const* from, std::size_t bytes, CUstream_st* stream) {
  if (!is_device_memory(to, bytes)) return Result::invalid_value;
  return enqueue("cuMemcpyHtoDAsync_v2", stream, [=] { std::memcpy(pointer_to<void>(to), from, bytes); });
}
Result cuMemcpyDtoHAsync_v2(void* to, DeviceAddress from, std::size_t bytes, CUstream_st* stream) {
  if (!is_device_memory(from, bytes)) return Result::invalid_value;
  return enqueue("cuMemcpyDtoHAsync_v2", stream, [=] { std::memcpy(to, pointer_to<void>(from), bytes); });
}
Result cuMemcpyDtoDAsync_v2(DeviceAddress to, DeviceAddress from, std::size_t bytes, CUstream_st* stream) {
  if (!is_device_memory(from, bytes) || !is_device_memory(to, bytes)) return Result::invalid_value;
  return enqueue("cuMemcpyDtoDAsync_v2", stream,
                 [=] { std::memcpy(pointer_to<void>(to), pointer_to<void>(from), bytes); });
}
Result cuMemsetD8Async(DeviceAddress address, unsigned char value, std::size_t bytes, CUstream_st* stream) {
  if (!is_device_memory(address, bytes)) return Result::invalid_value;
  return enqueue("cuMemsetD8Async", stream, [=] { std::memset(pointer_to<void>(address), value, bytes); });
}

Result cuStreamCreate(CUstream_st** stream, unsigned) { return create("cuStreamCreate", stream); }
Result cuStreamDestroy_v2(CUstream_st* stream) { return destroy("cuStreamDestroy_v2", stream); }
Result cuStreamSynchronize(CUstream_st* stream) {
  if (stream != nullptr && !state()->handles.contains(stream)) return invalid_handle;
  return refusal("cuStreamSynchronize");
}
Result cuStreamWaitEvent(CUstream_st*, CUevent_st* event, unsigned) {
  return state()->handles.contains(event) ? refusal("cuStreamWaitEvent") : invalid_handle;
}
Result cuStreamBeginCapture_v2(CUstream_st* stream, CaptureMode) {
  if (!state()->handles.contains(stream)) return invalid_handle;
  stream->capturing = true;
  return refusal("cuStreamBeginCapture_v2");
}
Result cuStreamEndCapture(CUstream_st* stream, CUgraph_st** graph) {
  if (!state()->handles.contains(stream) || !stream->capturing) return invalid_handle;
  Result const result = create("cuStreamEndCapture", graph);
  if (result == Result::success) (*graph)->work = std::move(stream->captured);
  stream->captured.clear();
  stream->capturing = false;
  return result;
}

Result cuEventCreate(CUevent_st** event, unsigned) { return create("cuEventCreate", event); }
Result cuEventDestroy_v2(CUevent_st* event) { return destroy("cuEventDestroy_v2", event); }
Result cuEventRecord(CUevent_st* event, CUstream_st* stream) {
  return enqueue("cuEventRecord", stream, [event] {
    event->recorded = true;
    event->milliseconds = state()->milliseconds;
  });
}
Result cuEventSynchronize(CUevent_st* event) {
  return event->recorded ? refusal("cuEventSynchronize") : Result::invalid_value;
}
Result cuEventElapsedTime(float* milliseconds, CUevent_st* start, CUevent_st* end) {
  *milliseconds = 2.5F + static_cast<float>(end->milliseconds - start->milliseconds);
  return start->recorded && end->recorded ? refusal("cuEventElapsedTime") : Result::invalid_value;
}

Result cuGraphInstantiateWithFlags(CUgraphExec_st** executable, CUgraph_st* graph, unsigned long long) {
  Result const result = create("cuGraphInstantiateWithFlags", executable);
  if (result == Result::success) (*executable)->work = graph->work;
  return result;
}
Result cuGraphLaunch(CUgraphExec_st* executable, CUstream_st* stream) {
  return enqueue("cuGraphLaunch", stream, [executable] {
    for (Work const& work : executable->work) work();
  });
}
Result cuGraphDestroy(CUgraph_st* graph) { return destroy("cuGraphDestroy", graph); }
Result cuGraphExecDestroy(CUgraphExec_st* executable) { return destroy("cuGraphExecDestroy", executable); }

Result cuModuleLoadData(CUmod_st** module, void const*) { return create("cuModuleLoadData", module); }
Result cuModuleUnload(CUmod_st* module) { return destroy("cuModuleUnload", module); }
Result cuModuleGetFunction(CUfunc_st** function, CUmod_st* module, char const* name) {
  if (!state()->handles.contains(module)) return invalid_handle;
  if (!state()->kernels.contains(name)) return Result::not_found;
  state()->functions.push_back(std::make_unique<CUfunc_st>(CUfunc_st{name, 0}));
  *function = state()->functions.back().get();
  return refusal("cuModuleGetFunction");
}
Result cuFuncGetAttribute(int* value, FunctionAttribute attribute, CUfunc_st* function) {
  switch (attribute) {
    case FunctionAttribute::threads_per_block: *value = 256; break;
    case FunctionAttribute::static_shared_bytes: *value = 1024; break;
    case FunctionAttribute::local_bytes: *value = 0; break;
    case FunctionAttribute::registers: *value = 42; break;
    case FunctionAttribute::dynamic_shared_bytes: *value = function->dynamic_shared_bytes; break;
  }
  return refusal("cuFuncGetAttribute");
}
Result cuFuncSetAttribute(CUfunc_st* function, FunctionAttribute attribute, int value) {
  if (attribute != FunctionAttribute::dynamic_shared_bytes) return Result::invalid_value;
  function->dynamic_shared_bytes = value;
  return refusal("cuFuncSetAttribute");
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunc_st*, int threads, std::size_t) {
  *blocks = 2048 / threads;
  return refusal("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

Result cuOccupancyMaxActiveClusters(int* clusters, CUfunc_st*,
                                    cosmati::cuda::LaunchConfiguration const* configuration) {
  *clusters = 4 / static_cast<int>(configuration->grid_x);
  return refusal("cuOccupancyMaxActiveClusters");
}

Result cuLaunchKernel(CUfunc_st* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned, unsigned, unsigned shared_bytes, CUstream_st* stream,
                      void** parameters, void** extra) {
  bool const in_buffer = parameters == nullptr && extra != nullptr &&
                         extra[0] == reinterpret_cast<void*>(1) && extra[2] == reinterpret_cast<void*>(2) &&
                         extra[4] == nullptr;
  bool const by_address =
      parameters != nullptr && extra == nullptr;  // parameters whose size only the module knows
  if (in_buffer == by_address || block_x > 256) return Result::invalid_value;
  if (shared_bytes > 48U * 1024U && shared_bytes > static_cast<unsigned>(function->dynamic_shared_bytes))
    return Result::invalid_value;
  fake::Launch launch{function->name, grid_x, grid_y, grid_z, block_x, shared_bytes, {}, stream};
  if (in_buffer) {
    launch.params.resize(*static_cast<std::size_t const*>(extra[3]));
    std::memcpy(launch.params.data(), extra[1], launch.params.size());
  }
  return enqueue("cuLaunchKernel", stream, [launch] {
    state()->launches.push_back(launch);
    state()->kernels.at(launch.kernel)(launch);
  });
}

}  // extern "C"
