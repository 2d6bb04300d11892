// Helpers for tests of the kernel cache: numbered sources, and a fake compiler.
#pragma once
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "src/jit/cache.h"
#include "tests/io/testing.h"

namespace cosmati::jit::testing {

using io::testing::contains;
using io::testing::error_of;
using io::testing::TemporaryFolder;

inline Source numbered_source(int number) {
  return {.text = "the text of " + std::to_string(number),
          .name_expression = "kernel<" + std::to_string(number) + ">"};
}

// The fake compiler's output for a source: `bytes` long, and different for every source.
inline Cubin expected_cubin(Source const& source, std::size_t bytes = 100) {
  Cubin cubin;
  std::string image = source.name_expression + source.text + source.architecture;
  for (std::string const& option : source.options) image += option;
  image.resize(bytes, '.');
  cubin.image.assign(io::testing::bytes_of(image).begin(), io::testing::bytes_of(image).end());
  cubin.lowered_name = "_Z" + source.name_expression;
  cubin.registers = 96;
  cubin.local_bytes = 8;
  cubin.static_shared_bytes = 16384;
  cubin.constant_bytes = 24;
  cubin.compiler = "none 1.0";
  cubin.compile_seconds = 0.125;
  cubin.compiler_warnings = "composed.cu(3): warning";
  return cubin;
}

inline void expect_same(Cubin const& cubin, Cubin const& expected) {
  EXPECT_EQ(cubin.image, expected.image);
  EXPECT_EQ(cubin.lowered_name, expected.lowered_name);
  EXPECT_EQ(cubin.registers, expected.registers);
  EXPECT_EQ(cubin.local_bytes, expected.local_bytes);
  EXPECT_EQ(cubin.static_shared_bytes, expected.static_shared_bytes);
  EXPECT_EQ(cubin.constant_bytes, expected.constant_bytes);
  EXPECT_EQ(cubin.compiler, expected.compiler);
  EXPECT_EQ(cubin.compile_seconds, expected.compile_seconds);
  EXPECT_EQ(cubin.compiler_warnings, expected.compiler_warnings);
}

// Counts compilations.
struct FakeCompiler {
  std::atomic<int> compiled = 0;
  std::size_t bytes = 100;
  std::chrono::milliseconds duration{0};

  KernelCache::Compiler function() {
    return [this](Source const& source) {
      ++compiled;
      std::this_thread::sleep_for(duration);
      return expected_cubin(source, bytes);
    };
  }
};

}  // namespace cosmati::jit::testing
