// The device headers embedded in this library for the run-time compiler.
#pragma once
#include <span>
#include <string_view>
#include <vector>

namespace cosmati::jit {

struct Header {
  std::string_view path;    // as in #include: "cosmati/gemm/policy.h"
  std::string_view sha256;  // of the text, in hexadecimal
  std::string_view text;    // followed by a zero byte
};

// All embedded headers, in the order of their folders. The build generates this table: cmake/embed.cmake.
std::span<Header const> embedded_headers();

// Returns the headers that `source` includes, directly or indirectly, each once. Includes of headers that are
// not embedded are ignored: conditions are not evaluated, and host-only branches include host headers.
std::vector<Header const*> reachable_headers(std::string_view source);

}  // namespace cosmati::jit
