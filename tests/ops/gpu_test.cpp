// GPUs described by name and by file.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "cosmati/ops/device.h"
#include "tests/support/complaint.h"

namespace cosmati {
namespace {

using testing::complaint_of;

class GpuFile : public ::testing::Test {
 protected:
  GpuFile()
      : path_((std::filesystem::temp_directory_path() /
               ("cosmati-gpu-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + '-' +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()))
                  .string()) {}
  ~GpuFile() override { std::remove(path_.c_str()); }

  Gpu read(std::string const& text) const {
    std::ofstream(path_) << text;
    return describe_gpu(path_);
  }
  // The message without the path.
  std::string complaint(std::string const& text) const {
    return complaint_of([&] { read(text); }, ErrorCode::bad_file).substr(path_.size());
  }

  std::string path_;
};

constexpr char const* minimum =
    "compute_capability = 8.0\nmultiprocessors = 10\nshared_bytes_per_block = 1000\n"
    "clock_hertz = 1e9\nmemory_bytes_per_second = 1.5e12\n";

TEST(DescribeGpu, KnowsFour) {
  Gpu const h200 = describe_gpu("h200");
  EXPECT_EQ(h200.major, 9);
  EXPECT_EQ(h200.multiprocessors, 132);
  EXPECT_EQ(h200.shared_bytes_per_block, 227 * 1024);
  // Data sheet: 67 TFLOP/s in f32, 34 in f64.
  EXPECT_NEAR(2.0 * h200.fma_f32 * h200.multiprocessors * h200.clock_hertz, 67e12, 1e12);
  EXPECT_NEAR(2.0 * h200.fma_f64 * h200.multiprocessors * h200.clock_hertz, 34e12, 1e12);
  EXPECT_LT(describe_gpu("h100").memory_bytes_per_second, h200.memory_bytes_per_second);
  Gpu const a100 = describe_gpu("a100");  // 19.5, 9.7 and 78
  EXPECT_NEAR(2.0 * a100.fma_f32 * a100.multiprocessors * a100.clock_hertz, 19.5e12, 0.1e12);
  EXPECT_NEAR(2.0 * a100.fma_f64 * a100.multiprocessors * a100.clock_hertz, 9.7e12, 0.1e12);
  EXPECT_NEAR(4.0 * a100.fma_half2 * a100.multiprocessors * a100.clock_hertz, 78e12, 0.5e12);
  Gpu const ada = describe_gpu("rtx4090");  // 82.6 in f32, as much in f16, a 64th of it in f64
  EXPECT_NEAR(2.0 * ada.fma_f32 * ada.multiprocessors * ada.clock_hertz, 82.6e12, 0.1e12);
  EXPECT_NEAR(4.0 * ada.fma_half2 * ada.multiprocessors * ada.clock_hertz, 82.6e12, 0.1e12);
  EXPECT_EQ(ada.fma_f32 / ada.fma_f64, 64);
  EXPECT_EQ(ada.threads_per_multiprocessor, 1536);
}

TEST(DescribeGpu, EmulatorStandsForAnH200) {
  Device const device = this_device(Backend::emulator, 3);
  EXPECT_EQ(device.threads, 3);
  EXPECT_EQ(device.gpu.name, describe_gpu("h200").name);
}

TEST(DescribeGpu, UnknownNameListsTheKnown) {
  std::string const text = complaint_of([] { describe_gpu("h201"); });
  EXPECT_EQ(text.find("unknown GPU 'h201' (did you mean h200?); valid values: h200, h100, a100, rtx4090, t4, "
                      "b200, a10, l4, l40s, rtx3060, rtx3090, rtx5090, or a file"),
            0U)
      << text;
}

TEST_F(GpuFile, WhatIsWrittenIsReadAgain) {
  for (char const* const name : {"h200", "h100", "a100", "rtx4090", "t4", "b200", "a10", "l4", "l40s",
                                 "rtx3060", "rtx3090", "rtx5090"}) {
    Gpu const gpu = describe_gpu(name);
    EXPECT_EQ(to_text(read(to_text(gpu))), to_text(gpu));
  }
  EXPECT_NE(to_text(describe_gpu("h200")).find("\nmemory_bytes_per_second = 4800000000000\n"),
            std::string::npos);
}

TEST_F(GpuFile, WhatIsNotGivenFollowsFromTheCapability) {
  Gpu const gpu = read("# mine\n\n  name = A card # of mine\r\n fma_f64=7\n" + std::string(minimum));
  EXPECT_EQ(gpu.name, "A card");
  EXPECT_EQ(gpu.shared_bytes_per_multiprocessor, 2024);
  EXPECT_EQ(gpu.registers_per_multiprocessor, 65536);
  EXPECT_EQ(gpu.fma_f32, 64);
  EXPECT_EQ(gpu.fma_f64, 7);
  EXPECT_EQ(gpu.threads_per_multiprocessor, 2048);
  Gpu const card = read(
      "compute_capability = 8.6\nmultiprocessors = 10\nshared_bytes_per_block = 1000\n"
      "clock_hertz = 1e9\nmemory_bytes_per_second = 1e12\n");
  EXPECT_EQ(card.threads_per_multiprocessor, 1536);  // the value of capability 8.6
  EXPECT_EQ(card.blocks_per_multiprocessor, 16);
  EXPECT_DOUBLE_EQ(gpu.memory_bytes_per_second, 1.5e12);
  EXPECT_EQ(read(minimum).name, path_);
}

TEST_F(GpuFile, ErrorsNameTheLine) {
  EXPECT_EQ(complaint("compute_capability = 9.0\nsm = 3\n")
                .find(":2: unknown key 'sm'; valid keys: name, compute_capability, multiprocessors, "
                      "shared_bytes_per_block"),
            0U);
  EXPECT_EQ(complaint("\nmultiprocessors\n"), ":2: 'multiprocessors' is not of the form key = value");
  EXPECT_EQ(complaint("multiprocessors = -3"), ":1: multiprocessors = -3; expected a positive number");
  EXPECT_EQ(complaint("multiprocessors = 3.5"),
            ":1: multiprocessors = 3.5; expected an integer below 2147483648");
  EXPECT_EQ(complaint("multiprocessors = 1e10"),
            ":1: multiprocessors = 1e10; expected an integer below 2147483648");
  EXPECT_EQ(complaint("clock_hertz = fast"), ":1: clock_hertz = fast; expected a positive number");
  EXPECT_EQ(complaint("clock_hertz = nan"), ":1: clock_hertz = nan; expected a positive number");
  EXPECT_EQ(complaint("clock_hertz = 1\nclock_hertz = 1"), ":2: clock_hertz is given twice");
  for (char const* const capability : {"9", "9.", ".5", "9.0a", "-1.0", "nine"})
    EXPECT_EQ(
        complaint(std::string("compute_capability = ") + capability),
        std::string(":1: compute_capability = ") + capability + "; expected MAJOR.MINOR, for example 9.0");
  EXPECT_EQ(complaint(""), ": compute_capability is missing");
  EXPECT_EQ(complaint("compute_capability = 9.0"), ": multiprocessors is missing");
}

}  // namespace
}  // namespace cosmati
