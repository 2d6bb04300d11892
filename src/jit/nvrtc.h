// NVIDIA's run-time compiler, opened on first use. The build requires neither its header nor its library.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cosmati::jit {

// The functions of nvrtc.h in use, unchanged since CUDA 11.1. A result of 0 means success.
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

// Opens the file named by COSMATI_NVRTC, otherwise libnvrtc.so.13, .12 or .so from the library path or a
// toolkit; with a driver of CUDA 12 the library of CUDA 12 first, since such a driver rejects machine code of
// a later major version. The first call takes about 30 ms. Throws Error(unavailable) with the reason.
Nvrtc const& nvrtc();

bool nvrtc_available();
std::vector<int> nvrtc_architectures();  // 75, 80, ...: supported targets; empty: not available
std::string const& nvrtc_description();  // version and path, or why it is not available

}  // namespace cosmati::jit
