// Digests that show whether kernels are the same as those that were measured.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "src/jit/compile.h"

namespace cosmati::jit {

// Returns C++ text without comments, with white space reduced to single spaces.
std::string code_of(std::string_view text);

// Returns 24 hexadecimal digits of a digest of everything these kernels are compiled from: options, names,
// texts and all reachable headers, each as returned by code_of(). It is the same on every machine and with
// every compiler. `plan`: decisions of the host in addition to the texts, such as the number of parts of k.
std::string digest_of(std::span<Source const> sources, std::string_view plan);

}  // namespace cosmati::jit
