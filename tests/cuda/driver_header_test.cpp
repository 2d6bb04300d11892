// Checks the declarations of driver.h against the toolkit's cuda.h; compiled if it is installed.
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "src/backend/cuda/driver/driver.h"
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

#if defined(CUDA_VERSION) && CUDA_VERSION >= 12080
namespace {

using namespace cosmati::cuda;

// Replaces enumerations by their underlying types, since each side declares its own.
template <class Any, bool = std::is_enum_v<Any>>
struct PlainOf {
  using type = Any;
};
template <class Enumeration>
struct PlainOf<Enumeration, true> {
  using type = std::underlying_type_t<Enumeration>;
};
// Our structures have names of their own; equal layout is checked below.
template <>
struct PlainOf<CUtensorMap, false> {
  using type = void;
};
template <>
struct PlainOf<CUlaunchConfig const, false> {
  using type = LaunchConfiguration const;
};
template <class Target>
struct PlainOf<Target*, false> {
  using type = typename PlainOf<Target>::type*;
};
template <class Returned, class... Parameters>
struct PlainOf<Returned(Parameters...), false> {
  using type = typename PlainOf<Returned>::type(typename PlainOf<Parameters>::type...);
};

#define COSMATI_SAME_FUNCTION(name, parameters) \
  static_assert(std::is_same_v<PlainOf<Result parameters>::type, PlainOf<decltype(::name)>::type>, #name);
COSMATI_CUDA_DRIVER(COSMATI_SAME_FUNCTION)

template <class Ours, class Theirs>
constexpr bool equal(Ours ours, Theirs theirs) {
  return static_cast<unsigned>(ours) == static_cast<unsigned>(theirs);
}

static_assert(equal(Result::success, CUDA_SUCCESS));
static_assert(equal(Result::invalid_value, CUDA_ERROR_INVALID_VALUE));
static_assert(equal(Result::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(equal(Result::not_initialized, CUDA_ERROR_NOT_INITIALIZED));
static_assert(equal(Result::deinitialized, CUDA_ERROR_DEINITIALIZED));
static_assert(equal(Result::stub_library, CUDA_ERROR_STUB_LIBRARY));
static_assert(equal(Result::device_unavailable, CUDA_ERROR_DEVICE_UNAVAILABLE));
static_assert(equal(Result::no_device, CUDA_ERROR_NO_DEVICE));
static_assert(equal(Result::invalid_device, CUDA_ERROR_INVALID_DEVICE));
static_assert(equal(Result::no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU));
static_assert(equal(Result::not_found, CUDA_ERROR_NOT_FOUND));
static_assert(equal(Result::system_not_ready, CUDA_ERROR_SYSTEM_NOT_READY));
static_assert(equal(Result::system_driver_mismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH));

static_assert(equal(DeviceAttribute::clock_kilohertz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
static_assert(equal(DeviceAttribute::multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(equal(DeviceAttribute::memory_clock_kilohertz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE));
static_assert(equal(DeviceAttribute::memory_bus_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH));
static_assert(equal(DeviceAttribute::l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
static_assert(equal(DeviceAttribute::threads_per_multiprocessor,
                    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
static_assert(equal(DeviceAttribute::capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(equal(DeviceAttribute::capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(equal(DeviceAttribute::shared_bytes_per_multiprocessor,
                    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
static_assert(equal(DeviceAttribute::registers_per_multiprocessor,
                    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));
static_assert(equal(DeviceAttribute::shared_bytes_per_block,
                    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
static_assert(equal(DeviceAttribute::blocks_per_multiprocessor,
                    CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR));

static_assert(equal(FunctionAttribute::threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
static_assert(equal(FunctionAttribute::static_shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
static_assert(equal(FunctionAttribute::local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
static_assert(equal(FunctionAttribute::registers, CU_FUNC_ATTRIBUTE_NUM_REGS));
static_assert(equal(FunctionAttribute::dynamic_shared_bytes,
                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));

static_assert(equal(TensorMapType::u8, CU_TENSOR_MAP_DATA_TYPE_UINT8));
static_assert(equal(TensorMapType::u16, CU_TENSOR_MAP_DATA_TYPE_UINT16));
static_assert(equal(TensorMapType::u32, CU_TENSOR_MAP_DATA_TYPE_UINT32));
static_assert(equal(TensorMapType::u64, CU_TENSOR_MAP_DATA_TYPE_UINT64));
static_assert(equal(TensorMapInterleave::none, CU_TENSOR_MAP_INTERLEAVE_NONE));
static_assert(equal(TensorMapSwizzle::none, CU_TENSOR_MAP_SWIZZLE_NONE));
static_assert(equal(TensorMapSwizzle::bytes32, CU_TENSOR_MAP_SWIZZLE_32B));
static_assert(equal(TensorMapSwizzle::bytes64, CU_TENSOR_MAP_SWIZZLE_64B));
static_assert(equal(TensorMapSwizzle::bytes128, CU_TENSOR_MAP_SWIZZLE_128B));
static_assert(equal(TensorMapPromotion::none, CU_TENSOR_MAP_L2_PROMOTION_NONE));
static_assert(equal(TensorMapPromotion::bytes128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B));
static_assert(equal(TensorMapFill::zeros, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(launch_attribute_early_start == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(sizeof(LaunchConfiguration) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfiguration, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfiguration, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfiguration, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfiguration, attribute_count) == offsetof(CUlaunchConfig, numAttrs));

static_assert(equal(CaptureMode::global, CU_STREAM_CAPTURE_MODE_GLOBAL));
static_assert(equal(CaptureMode::thread_local_only, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
static_assert(equal(CaptureMode::relaxed, CU_STREAM_CAPTURE_MODE_RELAXED));
static_assert(stream_non_blocking == CU_STREAM_NON_BLOCKING);
static_assert(event_without_timing == CU_EVENT_DISABLE_TIMING);
static_assert(host_memory_portable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(launch_end == CU_LAUNCH_PARAM_END_AS_INT);
static_assert(launch_buffer == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT);
static_assert(launch_buffer_size == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT);

TEST(DriverHeader, AgreesWithTheToolkit) { SUCCEED() << "cuda.h of CUDA " << CUDA_VERSION; }

}  // namespace
#else
TEST(DriverHeader, AgreesWithTheToolkit) { GTEST_SKIP() << "there is no cuda.h of CUDA 12.8 or later here"; }
#endif
