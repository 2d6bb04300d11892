// The run-time compiler: its results and its messages. Skipped, and counted as skipped, without NVRTC.
#include "src/jit/compile.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/jit/compiler_log.h"
#include "src/jit/embedded.h"
#include "src/jit/nvrtc.h"
#include "tests/jit/compile_all.h"
#include "tests/jit/testing.h"

namespace cosmati::jit {
namespace {

using namespace testing;

constexpr char const* reverse_text = R"(#include "cosmati/arch/config.h"
namespace test {
template <int extent>
COSMATI_KERNEL(extent, 1) reverse(float* data, cosmati::Index first) {
  static_assert(extent % 32 == 0, "the extent is a whole number of warps");
  __shared__ float shared[extent];
  shared[threadIdx.x] = data[first + threadIdx.x];
  __syncthreads();
  data[first + extent - 1 - threadIdx.x] = epilogue(shared[threadIdx.x]);
}
}
)";

Source reverse(std::string const& epilogue, int extent = 64) {
  return {.text = "__device__ float epilogue(float acc) {\n  return " + epilogue + ";\n}\n" + reverse_text,
          .name_expression = "test::reverse<" + std::to_string(extent) + ">",
          .label = epilogue};
}

class CompileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_available()) GTEST_SKIP() << nvrtc_description();
  }
};

TEST_F(CompileTest, MakesMachineCodeAndCountsWhatItNeeds) {
  Cubin const cubin = compile(reverse("2 * acc"));
  ASSERT_GT(cubin.image.size(), 64u);
  EXPECT_EQ(std::memcmp(cubin.image.data(),
                        "\x7f"
                        "ELF",
                        4),
            0);
  EXPECT_TRUE(cubin.lowered_name.starts_with("_ZN4test7reverseILi64EE")) << cubin.lowered_name;
  EXPECT_GT(cubin.registers, 3);
  EXPECT_EQ(cubin.local_bytes, 0);
  EXPECT_EQ(cubin.static_shared_bytes, 256);
  EXPECT_TRUE(cubin.compiler.starts_with("NVRTC ")) << cubin.compiler;
  EXPECT_GT(cubin.compile_seconds, 0);
  EXPECT_EQ(cubin.compiler_warnings, "");
  EXPECT_FALSE(cubin.from_cache);
}

TEST_F(CompileTest, EveryEmbeddedHeaderCompilesAlone) {
  std::vector<Source> sources;
  for (Header const& header : embedded_headers())
    sources.push_back({.text = "#include \"" + std::string(header.path) +
                               "\"\ntemplate <int i> __global__ void nothing() {}",
                       .name_expression = "nothing<0>",
                       .label = std::string(header.path)});
  run_all(sources.size(), 0,
          [&](std::size_t i) { EXPECT_NO_THROW(EXPECT_EQ(compile(sources[i]).compiler_warnings, "")); });
}

TEST_F(CompileTest, ArchitecturesAreDistinct) {
  Source source = reverse("acc");
  Cubin const hopper = compile(source);
  source.architecture = "sm_80";
  EXPECT_NE(compile(source).image, hopper.image);
}

TEST_F(CompileTest, AnErrorNamesTheLineAndTheEpilogue) {
  std::string const message = error_of([] { compile(reverse("relu_(acc)")); }, ErrorCode::bad_request);
  EXPECT_TRUE(contains(message, "the kernel of \"relu_(acc)\"")) << message;
  EXPECT_TRUE(contains(message, "test::reverse<64>")) << message;
  EXPECT_TRUE(contains(message, "composed.cu(2): error: identifier \"relu_\" is undefined")) << message;
  EXPECT_TRUE(contains(message, "composed.cu(2) is:   return relu_(acc);")) << message;
  EXPECT_FALSE(contains(message, "ptxas")) << message;
}

TEST_F(CompileTest, AFailedAssertionKeepsItsSentence) {
  std::string const message = error_of([] { compile(reverse("acc", 33)); }, ErrorCode::bad_request);
  EXPECT_TRUE(contains(message, "the extent is a whole number of warps")) << message;
}

TEST_F(CompileTest, AnErrorInAHeaderNamesTheHeader) {
  Source source = reverse("acc");
  source.text = "#define Index static\n" + source.text;
  std::string const message = error_of([&] { compile(source); }, ErrorCode::bad_request);
  EXPECT_TRUE(contains(message, "cosmati/core/config.h(")) << message;
}

TEST_F(CompileTest, UnknownKernelsArchitecturesOptionsAndHeadersAreRefused) {
  Source source = reverse("acc");
  source.name_expression = "test::nothing<1>";
  EXPECT_TRUE(contains(error_of([&] { compile(source); }, ErrorCode::bad_request), "nothing"));
  source = reverse("acc");
  source.architecture = "sm_12";
  std::string const message = error_of([&] { compile(source); }, ErrorCode::bad_request);
  EXPECT_TRUE(contains(message, "sm_12") && contains(message, "sm_90")) << message;
  source = reverse("acc");
  source.options = {"--no-such-option"};
  EXPECT_TRUE(contains(error_of([&] { compile(source); }, ErrorCode::bad_request), "--no-such-option"));
  source = reverse("acc");
  source.text = "#include <cuda_fp16.h>\n" + source.text;
  EXPECT_TRUE(contains(error_of([&] { compile(source); }, ErrorCode::bad_request), "cuda_fp16.h"));
}

TEST_F(CompileTest, WarningsAreKept) {
  Cubin const cubin = compile(reverse("acc; int unused"));
  EXPECT_TRUE(contains(cubin.compiler_warnings, "composed.cu(2): warning")) << cubin.compiler_warnings;
  EXPECT_FALSE(contains(cubin.compiler_warnings, "ptxas")) << cubin.compiler_warnings;
}

TEST_F(CompileTest, InParallelEachSourceHasItsOwnResult) {
  std::vector<Source> sources;
  for (int i = 1; i <= 16; ++i) sources.push_back(reverse(std::to_string(i) + " * acc", 32 * i));
  std::vector<Cubin> const together = compile_all(sources, 16);  // 16 threads, however few the cores
  ASSERT_EQ(together.size(), sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Cubin const alone = compile(sources[i]);
    EXPECT_EQ(together[i].image, alone.image);
    EXPECT_EQ(together[i].registers, alone.registers);
    EXPECT_EQ(together[i].local_bytes, 0);
    EXPECT_EQ(together[i].static_shared_bytes, 128 * static_cast<int>(i + 1));
    EXPECT_EQ(together[i].compiler_warnings, "");
  }
  sources[4] = reverse("fifth_(acc)");
  sources[2] = reverse("third_(acc)");
  EXPECT_TRUE(contains(error_of([&] { compile_all(sources, 3); }, ErrorCode::bad_request), "third_(acc)"));
}

TEST_F(CompileTest, TheCacheGivesBackWhatWasCompiled) {
  TemporaryFolder const folder;
  KernelCache cache({.folder = folder.path()});
  Cubin const compiled = cache.get(reverse("3 * acc")), found = cache.get(reverse("3 * acc"), false);
  EXPECT_FALSE(compiled.from_cache);
  EXPECT_TRUE(found.from_cache);
  expect_same(found, compiled);
  EXPECT_THROW(cache.get(reverse("nothing_(acc)")), Error);
  EXPECT_EQ(cache.statistics().files, 1);
}

TEST(CompilerLog, NamesLinesOfTheComposedTextOnly) {
  std::string const text = explain_log(
      "composed.cu(2): error: x\ncosmati/gemm/kernel.h(1): error: y\n  at line 3 of "
      "composed.cu\ncomposed.cu(9): z",
      "one\ntwo\nthree\n");
  EXPECT_TRUE(text.ends_with("\ncomposed.cu(2) is: two\ncomposed.cu(3) is: three")) << text;
  EXPECT_LT(explain_log(std::string(100000, 'x'), "one\n").size(), 20000u);
}

TEST(RunAll, RunsEveryTaskOnceAndThrowsTheFirstError) {
  std::vector<std::atomic<int>> calls(50);
  EXPECT_THROW(run_all(50, 4,
                       [&](std::size_t i) {
                         ++calls[i];
                         if (i == 20) throw std::out_of_range("20");
                         if (i == 10) throw std::length_error("10");
                       }),
               std::length_error);
  for (auto const& count : calls) EXPECT_EQ(count, 1);
  run_all(0, 0, [](std::size_t) { FAIL(); });
}

}  // namespace
}  // namespace cosmati::jit
