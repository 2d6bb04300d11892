// NVIDIA's run-time compiler, opened when it is first needed. The build knows neither its header nor its
// library.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cosmati::jit {

// The functions of nvrtc.h that we call; the same since CUDA 11.1. A result of 0 means success.
struct Nvrtc {
  using Program = struct NvrtcProgram*;
  static constexpr int out_of_memory = 1, invalid_option = 5, compilation_failed = 6,
                       bad_name_expression = 10;

  int (*version)(int* major, int* minor);
  char const* (*error_string)(int result);
  int (*count_architectures)(int* count);
  int (*architectures)(int* list);
  int (*create)(Program*, char const* source, char const* name, int headers, char const* const* header_texts,
                char const* const* header_names);
  int (*destroy)(Program*);
  int (*compile)(Program, int options, char const* const* list);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
  int (*add_name_expression)(Program, char const*);
  int (*lowered_name)(Program, char const* expression, char const** name);

  std::string name;  // "NVRTC 13.0"
  std::string path;
};

// Opens the file that COSMATI_NVRTC names, else libnvrtc.so.13, .12 or .so where the linker or a toolkit has
// it. The first call takes some 30 ms. Throws Error(unavailable), which says why.
Nvrtc const& nvrtc();

bool nvrtc_available();
std::vector<int> nvrtc_architectures();  // 75, 80, ...: what it compiles for; empty: it is not here
std::string const& nvrtc_description();  // version and path, or why it is not here

}  // namespace cosmati::jit
