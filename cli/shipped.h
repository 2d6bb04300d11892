// Files that come with the program.
#pragma once
#include <string>

namespace cosmati::cli {

// The generator that `train dcgan` made from tinted Fashion-MNIST, in share/cosmati/ beside the program's
// folder or above it. Throws Error(bad_request) if it is not there, saying where it was looked for.
std::string shipped_generator();

}  // namespace cosmati::cli
