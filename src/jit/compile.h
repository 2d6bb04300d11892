// A kernel from source text to machine code, by NVIDIA's run-time compiler. Needs no GPU.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace cosmati::jit {

struct Source {
  std::string text;                       // may include every embedded header, and nothing else
  std::string name_expression;            // the kernel: "cosmati::gemm_kernel<...>"
  std::vector<std::string> options = {};  // of NVRTC, beside those of compile_options()
  std::string architecture = "sm_90a";
  std::string label = {};  // for messages: what the user wrote, such as the epilogue's text
};

struct Cubin {
  std::vector<std::byte> image;  // what cuModuleLoadData takes
  std::string lowered_name;      // what cuModuleGetFunction takes
  int registers = 0;             // a thread
  int local_bytes = 0;           // of local memory a thread: spills and arrays that live in memory
  int static_shared_bytes = 0;   // a block, without what the driver reserves
  int constant_bytes = 0;        // the compiler's own, beside the parameters
  std::string compiler;          // "NVRTC 13.0"
  double compile_seconds = 0;    // when it was compiled
  std::string compiler_warnings = {};
  bool from_cache = false;
  std::string cache_warning = {};  // why it will not be found in the cache; empty: it will
};

// All options that `source` is compiled with.
std::vector<std::string> compile_options(Source const& source);

// Throws Error: unavailable without NVRTC; bad_request if the text, an option or the architecture is refused,
// with the compiler's message, the lines of the composed text that it names, and the label. May be called by
// many threads at once: NVRTC 13 compiles in parallel (two threads: 1.96 times one on two cores).
Cubin compile(Source const& source);

// One after another on each of `threads` threads; 0: as many as there are cores. Throws the error of the
// first source that has one, when all are done.
std::vector<Cubin> compile_all(std::span<Source const> sources, int threads = 0);

}  // namespace cosmati::jit
