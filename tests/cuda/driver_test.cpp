// The host side of the CUDA driver, tested with the fake driver: ownership, launches, graphs, errors,
// descriptions.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cosmati/ops/device.h"
#include "src/backend/cuda/driver/module.h"
#include "tests/cuda/fake_libcuda.h"
#include "tests/support/complaint.h"

namespace cosmati::cuda {
namespace {

using cosmati::testing::complaint_of;

// The first call opens the library for the whole process.
[[maybe_unused]] int const chosen =
    setenv("COSMATI_LIBCUDA", COSMATI_FAKE_LIBCUDA, 1) + setenv("COSMATI_FAKE_DEVICES", "2", 1);

class CudaDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::reset();
    fake::set_current_context(nullptr);
    handles_ = fake::handles();
    allocations_ = fake::allocations();
  }
  void TearDown() override {
    EXPECT_EQ(fake::handles(), handles_) << "all handles are given back";
    EXPECT_EQ(fake::allocations(), allocations_) << "all memory is given back";
    EXPECT_EQ(fake::current_context(), nullptr) << "the caller's context is current again";
  }

 private:
  int handles_ = 0, allocations_ = 0;
};

struct Params {
  float const* x;
  float* y;
  long long count;
  float factor[40];
};

void scale(fake::Launch const& launch) {
  auto const& params = launch.as<Params>();
  for (long long i = 0; i < params.count; ++i) params.y[i] = params.factor[39] * params.x[i];
}

TEST_F(CudaDriver, IsOpenedAndTellsItsVersion) {
  EXPECT_EQ(driver_failure(), "");
  EXPECT_EQ(driver_version(), "12.2");
}

TEST_F(CudaDriver, MissingFunctionIsUnavailable) {
  EXPECT_FALSE(driver().cuFuncLoad.present());
  EXPECT_EQ(complaint_of([] { driver().cuFuncLoad(nullptr); }, ErrorCode::unavailable),
            "the NVIDIA driver (of CUDA 12.2) has no function cuFuncLoad; a newer driver is required");
}

TEST_F(CudaDriver, FailureNamesCallAndReason) {
  fake::fail_next("cuCtxSynchronize", 700);
  EXPECT_EQ(complaint_of([] { wait_for_device(0); }, ErrorCode::system),
            "cuCtxSynchronize: the fake driver refuses (CUDA_ERROR_OF_THE_FAKE, 700)");
}

TEST_F(CudaDriver, DescribesDevices) {
  EXPECT_TRUE(has_cuda_device());
  auto const list = devices();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[1].ordinal, 1);
  Gpu const& gpu = this_device(Backend::cuda, 1, 1).gpu;
  EXPECT_EQ(gpu.name, "Fake H200");
  EXPECT_EQ(gpu.major * 10 + gpu.minor, 90);
  EXPECT_EQ(gpu.multiprocessors, 132);
  EXPECT_EQ(gpu.shared_bytes_per_block, 232448);
  EXPECT_EQ(gpu.shared_bytes_per_multiprocessor, 233472);
  EXPECT_EQ(gpu.memory_bytes, 1LL << 30);
  EXPECT_DOUBLE_EQ(gpu.clock_hertz, 1.98e9);
  EXPECT_DOUBLE_EQ(gpu.memory_bytes_per_second, 3.201e9 * 2 * 6144 / 8);
  EXPECT_EQ(gpu.fma_f64, 64);
  EXPECT_EQ(complaint_of([] { this_device(Backend::cuda, 1, 2); }, ErrorCode::unavailable),
            "device 2 is not available; available devices: 0 to 1");
}

TEST_F(CudaDriver, ContextOfTheCallerIsLeftAsItWas) {
  {
    Current const first(0);
    void* const context = fake::current_context();
    EXPECT_NE(context, nullptr);
    {
      Current const second(1);
      EXPECT_NE(fake::current_context(), context);
      Current const same(1);
    }
    EXPECT_EQ(fake::current_context(), context);
  }
  std::thread([] { EXPECT_NO_THROW(wait_for_device(0)); }).join();
}

TEST_F(CudaDriver, CopiesAndFills) {
  DeviceBuffer first(0, 100), second(1, 100);
  EXPECT_EQ(address_of(first.data()) % 256, 0U);
  PinnedBuffer pinned(0, 100);
  std::memset(pinned.data(), 7, 100);
  copy_to_device(0, first.data(), pinned.data(), 100, nullptr);
  fill(0, first.data(), 9, 10, nullptr);
  copy_on_device(0, second.data(), first.data(), 100, nullptr);
  std::vector<unsigned char> back(100);
  copy_to_host(0, back.data(), second.data(), 100, nullptr);
  wait(0, nullptr);
  EXPECT_EQ(back[9], 9);
  EXPECT_EQ(back[10], 7);
  DeviceBuffer moved = std::move(first);
  EXPECT_EQ(first.data(), nullptr);
  moved = DeviceBuffer(0, 0);
  EXPECT_NE(moved.data(), nullptr);
}

TEST_F(CudaDriver, HostPointersAreRefusedAsDeviceMemory) {
  char here[8] = {};
  EXPECT_THROW(fill(0, here, 0, 8, nullptr), Error);
}

TEST_F(CudaDriver, OutOfMemorySaysWhatIsFree) {
  DeviceBuffer const held(0, 24);
  EXPECT_EQ(complaint_of([] { DeviceBuffer(0, std::size_t{1} << 40); }, ErrorCode::out_of_memory),
            "device 0 has no memory for 1099511627776 bytes: 1073741800 of its 1073741824 bytes are free");
}

TEST_F(CudaDriver, StreamsAndEvents) {
  OwnedStream stream(0);
  Event start(0), end(0);
  EXPECT_THROW(end.wait(), Error);
  start.record(stream);
  end.record(stream);
  stream.wait_for(start);
  stream.wait();
  end.wait();
  EXPECT_DOUBLE_EQ(end.seconds_since(start), 2.5e-3);
}

// The driver would expect such a parameter after a gap.
TEST_F(CudaDriver, LaunchPassesWhatIsAlignedToMoreThanABufferByAddress) {
  struct alignas(64) Aligned {
    int numbers[16] = {};
  };
  fake::set_kernel("nothing", [](fake::Launch const&) {});
  OwnedStream const stream(0);
  Module(0, "image").function("nothing").launch({1, 1, 1}, 32, 0, Aligned{}, stream);
  stream.wait();
  ASSERT_EQ(fake::launches().size(), 1U);
  EXPECT_TRUE(fake::launches().front().params.empty());
}

TEST_F(CudaDriver, LaunchPassesOneStruct) {
  fake::set_kernel("scale", scale);
  Function function = Module(0, "image").function("scale");
  DeviceBuffer x(0, 16), y(0, 16);
  float const values[] = {1, 2, 3, 4};
  copy_to_device(0, x.data(), values, 16, nullptr);
  Params params{static_cast<float const*>(x.data()), static_cast<float*>(y.data()), 4, {}};
  params.factor[39] = 3;
  OwnedStream const stream(0);
  function.launch({5, 6, 7}, 128, 100, params, stream);
  float back[4] = {};
  copy_to_host(0, back, y.data(), 16, stream);
  EXPECT_EQ(back[3], 12);
  ASSERT_EQ(fake::launches().size(), 1U);
  fake::Launch const& launch = fake::launches().front();
  EXPECT_EQ(launch.grid_x, 5U);
  EXPECT_EQ(launch.grid_y, 6U);
  EXPECT_EQ(launch.grid_z, 7U);
  EXPECT_EQ(launch.threads, 128U);
  EXPECT_EQ(launch.shared_bytes, 100U);
  EXPECT_EQ(launch.params.size(), sizeof(Params));
  EXPECT_EQ(launch.stream, stream.handle());
  function.launch({0, 1, 1}, 128, 0, params, stream);
  EXPECT_EQ(fake::launches().size(), 1U) << "an empty grid is no launch";
  EXPECT_EQ(function.registers(), 42);
  EXPECT_EQ(function.local_bytes(), 0);
  EXPECT_EQ(function.blocks_per_multiprocessor(128, 0), 16);
}

TEST_F(CudaDriver, SharedMemoryBeyond48KilobytesMustBeAllowed) {
  fake::set_kernel("nothing", [](fake::Launch const&) {});
  Function function = Module(0, "image").function("nothing");
  EXPECT_EQ(
      complaint_of(
          [&] {
            function.launch({1, 2, 3}, 64, 100000, 0, nullptr);
          },
          ErrorCode::system),
      "kernel nothing, grid 1 x 2 x 3, 64 threads, 100000 bytes of shared memory: cuLaunchKernel: the fake "
      "driver refuses (CUDA_ERROR_OF_THE_FAKE, 1)");
  function.allow_shared_bytes(100000);
  EXPECT_NO_THROW(function.launch({1, 2, 3}, 64, 100000, 0, nullptr));
  EXPECT_EQ(complaint_of([&] { function.allow_shared_bytes(232448); }),
            "kernel nothing needs 232448 bytes of dynamic shared memory; device 0 has 231424 left per block");
}

TEST_F(CudaDriver, UnknownKernelIsNamed) {
  Module const module(0, "image");
  EXPECT_EQ(complaint_of([&] { module.function("absent"); }, ErrorCode::system),
            "the loaded module has no kernel 'absent'");
}

TEST_F(CudaDriver, GraphRunsWhatWasCaptured) {
  fake::set_kernel("nothing", [](fake::Launch const&) {});
  Function const function = Module(0, "image").function("nothing");
  OwnedStream const stream(0);
  {
    Capture const forgotten(stream);
    function.launch({}, 32, 0, 0, stream);
  }
  Capture capture(stream);
  function.launch({}, 32, 0, 0, stream);
  function.launch({}, 64, 0, 0, stream);
  EXPECT_TRUE(fake::launches().empty());
  Graph const graph = capture.finish();
  EXPECT_TRUE(fake::launches().empty());
  graph.launch(stream);
  graph.launch(stream);
  ASSERT_EQ(fake::launches().size(), 4U);
  EXPECT_EQ(fake::launches()[3].threads, 64U);
}

TEST_F(CudaDriver, FailureInADestructorIsToldAndNotThrown) {
  ::testing::internal::CaptureStderr();
  auto* const buffer = new DeviceBuffer(0, 8);
  DeviceAddress const address = buffer->handle();
  fake::fail_next("cuMemFree_v2", 700);
  delete buffer;
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "cosmati: cuMemFree_v2 failed with error 700\n");
  Current const current(0);
  driver().cuMemFree_v2(address);
}

}  // namespace
}  // namespace cosmati::cuda
