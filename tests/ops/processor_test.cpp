// Processors described by name and by file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "cosmati/ops/processor.h"
#include "src/ops/host_caches.h"
#include "tests/support/complaint.h"

namespace cosmati {
namespace {

using testing::complaint_of;

class ProcessorFile : public ::testing::Test {
 protected:
  ProcessorFile()
      : path_((std::filesystem::temp_directory_path() /
               ("cosmati-processor-" + std::to_string(getpid()) + '-' +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()))
                  .string()) {}
  ~ProcessorFile() override { std::remove(path_.c_str()); }

  Device read(std::string const& text, int threads = 0) const {
    std::ofstream(path_) << text;
    return describe_processor(path_, threads);
  }
  // The message without the path.
  std::string complaint(std::string const& text) const {
    return complaint_of([&] { read(text); }, ErrorCode::bad_file).substr(path_.size());
  }

  std::string path_;
};

TEST(DescribeProcessor, KnowsFour) {
  Device const laptop = describe_processor("avx2-laptop");
  EXPECT_EQ(laptop.backend, Backend::cpu);
  EXPECT_TRUE(laptop.avx2);
  EXPECT_FALSE(laptop.avx512 || laptop.avx512_bf16 || laptop.avx512_vnni);
  EXPECT_EQ(laptop.threads, 8);
  EXPECT_EQ(laptop.cores, 8);
  EXPECT_EQ(processor_summary(laptop), "AVX2, 8 cores, 32 KiB L1d, 512 KiB L2, 16 MiB L3");
  Device const server = describe_processor("avx512-server", 3);
  EXPECT_TRUE(server.avx2 && server.avx512 && server.avx512_bf16 && server.avx512_vnni);
  EXPECT_EQ(server.threads, 3);
  EXPECT_EQ(server.cores, 16);
  EXPECT_EQ(server.l2_bytes, 1 << 20);
  EXPECT_EQ(describe_processor("avx512-server").threads, 16);
  EXPECT_EQ(describe_processor("64-core-server").threads, 64);
  Device const old = describe_processor("sse2-only");
  EXPECT_FALSE(old.avx2 || old.avx512);
  EXPECT_EQ(instruction_set(old), "SSE2");
  EXPECT_TRUE(is_processor("sse2-only"));
  EXPECT_FALSE(is_processor("h200"));
}

TEST(DescribeProcessor, UnknownNameListsTheKnown) {
  EXPECT_EQ(
      complaint_of([] { describe_processor("laptop"); }),
      "unknown processor 'laptop'; valid values: sse2-only, avx2-laptop, avx512-server, 64-core-server, "
      "or a file written by `cosmati info --describe avx2-laptop`");
}

TEST_F(ProcessorFile, WhatIsWrittenIsReadAgain) {
  for (char const* name : {"sse2-only", "avx2-laptop", "avx512-server", "64-core-server"}) {
    std::string const text = processor_text(describe_processor(name));
    EXPECT_EQ(processor_text(read(text)), text);
  }
  Device const here = this_device(Backend::cpu);
  EXPECT_EQ(processor_text(read(processor_text(here))), processor_text(here));
  // A limit on threads does not belong to the processor's description.
  EXPECT_EQ(processor_text(this_device(Backend::cpu, 1)), processor_text(here));
}

TEST_F(ProcessorFile, ErrorsSayWhereAndWhatIsLegal) {
  EXPECT_EQ(complaint("instruction_set = AVX\n"),
            ":1: instruction_set = AVX; expected SSE2, AVX2, AVX512, AVX512_VNNI, AVX512_BF16");
  EXPECT_EQ(complaint("# mine\ncores = 0\n"), ":2: cores = 0; expected a positive number");
  EXPECT_EQ(complaint("cores = 2.5\n"), ":1: cores = 2.5; expected an integer below 2147483648");
  EXPECT_EQ(complaint("cores = 2\ncores = 2\n"), ":2: cores is given twice");
  EXPECT_EQ(complaint("sms = 2\n"),
            ":1: unknown key 'sms'; valid keys: instruction_set, cores, l1_bytes, l2_bytes, l3_bytes");
  EXPECT_EQ(complaint("l2_bytes = -1\n"), ":1: l2_bytes = -1; expected a positive number");
  EXPECT_EQ(complaint("cores = 2\n"), ": instruction_set is missing");
  Device const device = read("instruction_set=AVX512_VNNI\ncores = 4 # of them\n", 2);
  EXPECT_TRUE(device.avx512_vnni);
  EXPECT_FALSE(device.avx512_bf16);
  EXPECT_EQ(device.threads, 2);
  EXPECT_EQ(processor_summary(device), "AVX512_VNNI, 4 cores");
  EXPECT_EQ(processor_summary(read("instruction_set=SSE2\ncores=1\nl2_bytes=1536000\n")),
            "SSE2, 1 core, 1500 KiB L2");
}

TEST(HostCaches, AreReadAsLinuxTellsThem) {
  namespace files = std::filesystem;
  files::path const folder = files::temp_directory_path() / ("cosmati-caches-" + std::to_string(getpid()));
  auto const write = [&folder](int index, char const* level, char const* type, char const* size) {
    files::path const cache = folder / ("index" + std::to_string(index));
    files::create_directories(cache);
    std::ofstream(cache / "level") << level << '\n';
    std::ofstream(cache / "type") << type << '\n';
    std::ofstream(cache / "size") << size << '\n';
  };
  write(0, "1", "Data", "48K");
  write(1, "1", "Instruction", "32K");
  write(2, "2", "Unified", "2048K");
  write(3, "3", "Unified", "260M");
  HostCaches const caches = read_host_caches(folder);
  EXPECT_EQ(caches.l1_bytes, 48 << 10);
  EXPECT_EQ(caches.l2_bytes, 2 << 20);
  EXPECT_EQ(caches.l3_bytes, 260ll << 20);
  write(2, "2", "Unified", "much");
  write(3, "3", "Unified", "99999999999999999999M");
  EXPECT_EQ(read_host_caches(folder).l2_bytes, 0);
  EXPECT_EQ(read_host_caches(folder).l3_bytes, 0);
  files::remove_all(folder);
  EXPECT_EQ(read_host_caches(folder).l1_bytes, 0);
}

}  // namespace
}  // namespace cosmati
