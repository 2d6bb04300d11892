// The architectures that a program is compiled for.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati::arch {

// Returns the lowest of them, 100 * major + 10 * minor, whose features every kernel of the program may use.
// nvcc passes the same list to host and device compilation, so that all passes name the same kernels. The
// emulator models an H200.
COSMATI_CONSTEXPR int min_architecture() {
#if defined(__CUDA_ARCH_LIST__)
  constexpr int all[] = {__CUDA_ARCH_LIST__};
#elif defined(__CUDA_ARCH__)
  constexpr int all[] = {__CUDA_ARCH__};
#else
  constexpr int all[] = {900};
#endif
  int minimum = all[0];
  for (int const one : all) minimum = one < minimum ? one : minimum;
  return minimum;
}

}  // namespace cosmati::arch
