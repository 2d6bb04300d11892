// Compiles a kernel from source text to machine code, by NVIDIA's run-time compiler. Needs no GPU.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cosmati::jit {

struct Source {
  std::string text;                       // may include every embedded header, and nothing else
  std::string name_expression;            // the kernel: "cosmati::gemm_kernel<...>"
  std::vector<std::string> options = {};  // for NVRTC, in addition to compile_options()
  std::string architecture = "sm_90a";
  std::string label = {};  // for messages: the user's text, such as the epilogue
};

struct Cubin {
  std::vector<std::byte> image;  // argument of cuModuleLoadData
  std::string lowered_name;      // argument of cuModuleGetFunction
  int registers = 0;             // per thread
  int local_bytes = 0;           // local memory per thread: spills and arrays in memory
  int static_shared_bytes = 0;   // per block, without what the driver reserves
  int constant_bytes = 0;        // the compiler's own, in addition to the parameters
  std::string compiler;          // "NVRTC 13.0"
  double compile_seconds = 0;    // of the original compilation
  std::string compiler_warnings = {};
  bool from_cache = false;
  std::string cache_warning = {};  // why it could not be stored in the cache; empty: it was
};

// Returns all options with which `source` is compiled.
std::vector<std::string> compile_options(Source const& source);

// Throws Error: unavailable without NVRTC; bad_request if the text, an option or the architecture is
// rejected, with the compiler's message, the lines of the composed text that it names, and the label.
// Thread-safe: NVRTC 13 compiles in parallel (two threads: 1.96 times one on two cores).
Cubin compile(Source const& source);

}  // namespace cosmati::jit
