// Which architectures a program is compiled for.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati::arch {

// The least of them, 100 * major + 10 * minor: what every kernel of the program may use. nvcc tells the list
// to its passes for the host and for each GPU alike, so that all of them name the same kernels. The emulator
// stands for an H200.
COSMATI_CONSTEXPR int least_architecture() {
#if defined(__CUDA_ARCH_LIST__)
  constexpr int all[] = {__CUDA_ARCH_LIST__};
#elif defined(__CUDA_ARCH__)
  constexpr int all[] = {__CUDA_ARCH__};
#else
  constexpr int all[] = {900};
#endif
  int least = all[0];
  for (int const one : all) least = one < least ? one : least;
  return least;
}

}  // namespace cosmati::arch
