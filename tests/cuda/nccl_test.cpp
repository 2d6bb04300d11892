// Sums over GPUs by NCCL: weights per device, failures with NCCL's messages, and no device waits for one that
// has failed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cosmati/ops/error.h"
#include "cosmati/ops/memory.h"
#include "cosmati/ops/queue.h"
#include "src/parallel/all_reduce.h"
#include "src/parallel/nccl.h"

namespace cosmati::parallel {
namespace {

[[maybe_unused]] int const chosen =
    setenv("COSMATI_LIBCUDA", COSMATI_FAKE_LIBCUDA, 1) + setenv("COSMATI_FAKE_DEVICES", "2", 1);

std::vector<Device> two_devices() {
  setenv("COSMATI_NCCL", COSMATI_FAKE_NCCL, 1);
  return {this_device(Backend::cuda, 1, 0), this_device(Backend::cuda, 1, 1)};
}

template <class Body>
std::string failure_of(Body const& body) {
  try {
    body();
  } catch (Error const& error) {
    return error.what();
  }
  return "";
}

// Must run first, because the library stays loaded for the rest of the process.
TEST(Nccl, IsSaidToBeMissing) {
  auto const devices = two_devices();
  setenv("COSMATI_NCCL", "/nowhere/libnccl.so.2", 1);
  EXPECT_NE(failure_of([&] { make_all_reduce(devices, nullptr); }).find("/nowhere/libnccl.so.2"),
            std::string::npos);
  setenv("COSMATI_NCCL", COSMATI_FAKE_LIBCUDA, 1);
  EXPECT_NE(
      failure_of([&] { make_all_reduce(devices, nullptr); }).find("it has no function ncclGetErrorString"),
      std::string::npos);
}

TEST(Nccl, SumsWeightedArraysOfAllDevices) {
  auto const devices = two_devices();
  auto const sums = make_all_reduce(devices, nullptr);
  ASSERT_EQ(sums.size(), 2U);
  double const weights[] = {0.25, 0.75};
  std::vector<float> found[2];
  std::vector<std::thread> threads;
  for (std::size_t d = 0; d < 2; ++d)
    threads.emplace_back([&, d] {
      Queue queue(devices[d]);
      std::vector<float> const mine = {8, static_cast<float>(d), -4};
      DeviceMemory memory(devices[d], mine.size() * sizeof(float));
      memory.upload(mine.data(), memory.bytes());
      for (double const weight : {weights[d], 1.0, weights[d]})
        sums[d]->sum(static_cast<float*>(memory.data()), mine.size(), weight, queue);
      queue.wait();
      found[d].resize(mine.size());
      memory.download(found[d].data(), memory.bytes());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], (std::vector<float>{16, 1.5F, -8}));
}

TEST(Nccl, TellsWhatItSays) {
  two_devices();
  auto const devices = std::vector<Device>(13, this_device(Backend::cuda, 1, 0));
  EXPECT_EQ(failure_of([&] { make_all_reduce(devices, nullptr); }),
            "ncclCommInitRank: internal error (the fake refuses 13 ranks)");
}

TEST(Nccl, NobodyWaitsForAFailedDevice) {
  auto const devices = two_devices();
  auto const sums = make_all_reduce(devices, nullptr);
  DeviceMemory memory(devices[0], sizeof(float));
  std::string said;
  std::thread waiting(
      [&] { said = failure_of([&] { sums[0]->sum(static_cast<float*>(memory.data()), 1, 1, nullptr); }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (auto const& part : sums) part->abort();
  waiting.join();
  EXPECT_FALSE(said.empty());
  EXPECT_EQ(failure_of([&] { sums[1]->sum(static_cast<float*>(memory.data()), 1, 1, nullptr); }),
            "another device failed during a sum");
}

}  // namespace
}  // namespace cosmati::parallel
