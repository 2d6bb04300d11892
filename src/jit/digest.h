// Whether kernels are the same as those that were measured.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "src/jit/compile.h"

namespace cosmati::jit {

// C++ without what the compiler does not see: comments are gone, and what separates words is one space.
std::string code_of(std::string_view text);

// 24 hexadecimal digits of what these kernels are compiled from: options, names, texts and all headers that
// they reach, each as code_of() has it. The same on every machine and with every compiler. `plan`: what the
// host decides beside the texts, such as the number of parts of k.
std::string digest_of(std::span<Source const> sources, std::string_view plan);

}  // namespace cosmati::jit
