// Files that are distributed with the program.
#pragma once
#include <string>

namespace cosmati::cli {

// The generator trained by `train dcgan` on tinted Fashion-MNIST, in share/cosmati/ beside the program's
// folder or above it. Throws Error(bad_request) naming the places searched if it is missing.
std::string shipped_generator();

}  // namespace cosmati::cli
