// The device headers that this library carries within itself, for the run-time compiler.
#pragma once
#include <span>
#include <string_view>
#include <vector>

namespace cosmati::jit {

struct Header {
  std::string_view path;    // as #include names it: "cosmati/gemm/policy.h"
  std::string_view sha256;  // of the text, in hexadecimal
  std::string_view text;    // a zero byte follows it
};

// All of them, in the order of their folders. The build writes this table: cmake/embed.cmake.
std::span<Header const> embedded_headers();

// Those that `source` includes, directly or through others, each once. A line that includes a header that is
// not embedded adds nothing: conditions are not evaluated, and the host's branches name headers of the host.
std::vector<Header const*> reachable_headers(std::string_view source);

}  // namespace cosmati::jit
