// The NVIDIA driver, loaded on first use: its types and functions, declared here so that the build needs no
// toolkit, and checks of their results.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

// The driver's own names: a program that includes <cuda.h> sees the same types.
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace cosmati::cuda {

using Ordinal = int;  // CUdevice
using DeviceAddress = unsigned long long;

enum class Result : unsigned {  // CUresult
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  stub_library = 34,
  device_unavailable = 46,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  no_binary_for_gpu = 209,
  invalid_ptx = 218,
  unsupported_ptx_version = 222,
  not_found = 500,
  system_not_ready = 802,
  system_driver_mismatch = 803,
};

enum class DeviceAttribute : unsigned {  // CUdevice_attribute
  clock_kilohertz = 13,
  multiprocessors = 16,
  memory_clock_kilohertz = 36,
  memory_bus_bits = 37,
  l2_bytes = 38,
  threads_per_multiprocessor = 39,
  capability_major = 75,
  capability_minor = 76,
  shared_bytes_per_multiprocessor = 81,
  registers_per_multiprocessor = 82,
  shared_bytes_per_block = 97,  // the maximum to which a kernel can opt in
  blocks_per_multiprocessor = 106,
};

enum class FunctionAttribute : unsigned {  // CUfunction_attribute
  threads_per_block = 0,
  static_shared_bytes = 1,
  local_bytes = 3,
  registers = 4,
  dynamic_shared_bytes = 8,
};

enum class TensorMapType : unsigned { u8 = 0, u16 = 1, u32 = 2, u64 = 4 };  // CUtensorMapDataType
enum class TensorMapSwizzle : unsigned { none = 0, bytes32 = 1, bytes64 = 2, bytes128 = 3 };
enum class TensorMapInterleave : unsigned { none = 0 };
enum class TensorMapPromotion : unsigned { none = 0, bytes128 = 2 };  // CUtensorMapL2promotion
enum class TensorMapFill : unsigned { zeros = 0 };                    // CUtensorMapFloatOOBfill

struct LaunchAttribute {  // CUlaunchAttribute
  unsigned id = 0;
  unsigned padding = 0;
  alignas(8) int value[16] = {};
};
constexpr unsigned launch_attribute_together = 2;     // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
constexpr unsigned launch_attribute_cluster = 4;      // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
constexpr unsigned launch_attribute_early_start = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
struct LaunchConfiguration {                          // CUlaunchConfig
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  CUstream_st* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

enum class CaptureMode : unsigned { global = 0, thread_local_only = 1, relaxed = 2 };  // CUstreamCaptureMode

constexpr unsigned stream_non_blocking = 1;
constexpr unsigned event_without_timing = 2;
constexpr unsigned host_memory_portable = 1;
// Keys of the list `extra` of cuLaunchKernel, as pointers.
constexpr int launch_end = 0, launch_buffer = 1, launch_buffer_size = 2;

// The functions in use, by the names that the library exports, with their parameters, which clang-format
// would parse as products.
// clang-format off
#define COSMATI_CUDA_DRIVER(FUNCTION)                                                                    \
  FUNCTION(cuInit, (unsigned flags))                                                                     \
  FUNCTION(cuGetErrorName, (Result result, char const** text))                                           \
  FUNCTION(cuGetErrorString, (Result result, char const** text))                                         \
  FUNCTION(cuDriverGetVersion, (int* version))                                                           \
  FUNCTION(cuDeviceGetCount, (int* count))                                                               \
  FUNCTION(cuDeviceGet, (Ordinal* device, int ordinal))                                                  \
  FUNCTION(cuDeviceGetName, (char* name, int length, Ordinal device))                                    \
  FUNCTION(cuDeviceTotalMem_v2, (std::size_t* bytes, Ordinal device))                                    \
  FUNCTION(cuDeviceGetAttribute, (int* value, DeviceAttribute attribute, Ordinal device))                \
  FUNCTION(cuDevicePrimaryCtxRetain, (CUctx_st** context, Ordinal device))                               \
  FUNCTION(cuCtxGetCurrent, (CUctx_st** context))                                                        \
  FUNCTION(cuCtxSetCurrent, (CUctx_st* context))                                                         \
  FUNCTION(cuDeviceCanAccessPeer, (int* can, Ordinal device, Ordinal peer))                              \
  FUNCTION(cuCtxEnablePeerAccess, (CUctx_st* peer, unsigned flags))                                      \
  FUNCTION(cuCtxSynchronize, ())                                                                         \
  FUNCTION(cuMemGetInfo_v2, (std::size_t* free, std::size_t* total))                                     \
  FUNCTION(cuMemAlloc_v2, (DeviceAddress* address, std::size_t bytes))                                   \
  FUNCTION(cuMemFree_v2, (DeviceAddress address))                                                        \
  FUNCTION(cuMemHostAlloc, (void** address, std::size_t bytes, unsigned flags))                          \
  FUNCTION(cuMemFreeHost, (void* address))                                                               \
  FUNCTION(cuMemcpyHtoDAsync_v2,                                                                         \
           (DeviceAddress to, void const* from, std::size_t bytes, CUstream_st* stream))                 \
  FUNCTION(cuMemcpyDtoHAsync_v2, (void* to, DeviceAddress from, std::size_t bytes, CUstream_st* stream)) \
  FUNCTION(cuMemcpyDtoDAsync_v2,                                                                         \
           (DeviceAddress to, DeviceAddress from, std::size_t bytes, CUstream_st* stream))               \
  FUNCTION(cuMemsetD8Async,                                                                              \
           (DeviceAddress address, unsigned char value, std::size_t bytes, CUstream_st* stream))         \
  FUNCTION(cuStreamCreate, (CUstream_st** stream, unsigned flags))                                       \
  FUNCTION(cuStreamDestroy_v2, (CUstream_st* stream))                                                    \
  FUNCTION(cuStreamSynchronize, (CUstream_st* stream))                                                   \
  FUNCTION(cuStreamWaitEvent, (CUstream_st* stream, CUevent_st* event, unsigned flags))                  \
  FUNCTION(cuStreamBeginCapture_v2, (CUstream_st* stream, CaptureMode mode))                             \
  FUNCTION(cuStreamEndCapture, (CUstream_st* stream, CUgraph_st** graph))                                \
  FUNCTION(cuEventCreate, (CUevent_st** event, unsigned flags))                                          \
  FUNCTION(cuEventDestroy_v2, (CUevent_st* event))                                                       \
  FUNCTION(cuEventRecord, (CUevent_st* event, CUstream_st* stream))                                      \
  FUNCTION(cuEventSynchronize, (CUevent_st* event))                                                      \
  FUNCTION(cuEventElapsedTime_v2, (float* milliseconds, CUevent_st* start, CUevent_st* end))             \
  FUNCTION(cuGraphInstantiateWithFlags,                                                                  \
           (CUgraphExec_st** executable, CUgraph_st* graph, unsigned long long flags))                   \
  FUNCTION(cuGraphLaunch, (CUgraphExec_st* executable, CUstream_st* stream))                             \
  FUNCTION(cuGraphDestroy, (CUgraph_st* graph))                                                          \
  FUNCTION(cuGraphExecDestroy, (CUgraphExec_st* executable))                                             \
  FUNCTION(cuModuleLoadData, (CUmod_st** module, void const* image))                                     \
  FUNCTION(cuModuleUnload, (CUmod_st* module))                                                           \
  FUNCTION(cuModuleGetFunction, (CUfunc_st** function, CUmod_st* module, char const* name))              \
  FUNCTION(cuFuncLoad, (CUfunc_st* function))                                                            \
  FUNCTION(cuFuncGetAttribute, (int* value, FunctionAttribute attribute, CUfunc_st* function))           \
  FUNCTION(cuFuncSetAttribute, (CUfunc_st* function, FunctionAttribute attribute, int value))            \
  FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                  \
           (int* blocks, CUfunc_st* function, int threads, std::size_t dynamic_shared_bytes))            \
  FUNCTION(cuOccupancyMaxActiveClusters,                                                                 \
           (int* clusters, CUfunc_st* function, LaunchConfiguration const* configuration))               \
  FUNCTION(cuTensorMapEncodeTiled,                                                                       \
           (void* map, TensorMapType type, unsigned rank, void* address, std::uint64_t const* extents,   \
            std::uint64_t const* strides, unsigned const* box, unsigned const* steps,                    \
            TensorMapInterleave interleave, TensorMapSwizzle swizzle, TensorMapPromotion promotion,      \
            TensorMapFill fill))                                                                         \
  FUNCTION(cuTensorMapEncodeIm2col,                                                                      \
           (void* map, TensorMapType type, unsigned rank, void* address, std::uint64_t const* extents,   \
            std::uint64_t const* strides, int const* lower, int const* upper, unsigned channels,         \
            unsigned pixels, unsigned const* steps, TensorMapInterleave interleave,                      \
            TensorMapSwizzle swizzle, TensorMapPromotion promotion, TensorMapFill fill))                 \
  FUNCTION(cuLaunchKernelEx, (LaunchConfiguration const* configuration, CUfunc_st* function,             \
                              void** parameters, void** extra))                                          \
  FUNCTION(cuLaunchKernel,                                                                               \
           (CUfunc_st* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,    \
            unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream_st* stream,              \
            void** parameters, void** extra))
// clang-format on

// Throws Error "CALL: TEXT (NAME)" unless the call succeeded: out_of_memory, unavailable (there is no
// suitable device) or system.
void check(char const* call, Result result);
// For destructors: reports to stderr. A driver that process exit has already shut down is not an error.
void check_quietly(char const* call, Result result) noexcept;
[[noreturn]] void throw_missing(char const* function);

template <class Signature>
class Entry;

// A function of the driver. Throws Error(unavailable) if this driver lacks it.
template <class... Parameters>
class Entry<Result(Parameters...)> {
 public:
  using Pointer = Result (*)(Parameters...);
  explicit Entry(char const* name) : name_(name) {}

  bool present() const { return pointer_ != nullptr; }
  void bind(void* address) { pointer_ = reinterpret_cast<Pointer>(address); }
  // operator() throws if the call fails; attempt() returns the result.
  void operator()(Parameters... arguments) const { check(name_, attempt(arguments...)); }
  Result attempt(Parameters... arguments) const {
    if (pointer_ == nullptr) throw_missing(name_);
    return pointer_(arguments...);
  }
  void quietly(Parameters... arguments) const noexcept {
    if (pointer_ != nullptr) check_quietly(name_, pointer_(arguments...));
  }

 private:
  char const* name_;
  Pointer pointer_ = nullptr;
};

struct Driver {
#define COSMATI_MEMBER(name, parameters) Entry<Result parameters> name{#name};
  COSMATI_CUDA_DRIVER(COSMATI_MEMBER)
#undef COSMATI_MEMBER
};

// Opens and initializes the file named by COSMATI_LIBCUDA, otherwise libcuda.so.1, on the first call, for the
// whole process. Throws Error(unavailable) with the reason.
Driver const& driver();
// Empty if there is a working driver; otherwise the reason.
std::string const& driver_failure();
std::string driver_version();  // of CUDA, e.g. "13.0"; throws like driver()

}  // namespace cosmati::cuda
