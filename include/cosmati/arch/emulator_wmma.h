// The emulator interface for WMMA in arch/; extends arch/emulator.h.
#pragma once

#if !defined(__CUDACC__)

#include "cosmati/arch/emulator.h"

namespace cosmati::emulator {

// A matrix in shared memory that a warp loads into a fragment or stores from one: `lines` of `line_bytes`,
// `stride_bytes` apart.
struct WmmaMatrix {
  char const* name;  // name of the instruction
  void const* address;
  int lines, line_bytes, stride_bytes;
  int alignment;  // required alignment of the address in bytes
};

// Fails for the running lane if the address is misaligned or outside shared memory, if the stride is not a
// multiple of 16 bytes, or if lines overlap or leave shared memory.
void check_wmma_matrix(WmmaMatrix const& matrix);

// Called in the warp's rendezvous: all lanes must have passed the same address.
void check_wmma_lane(WmmaMatrix const& matrix, int lane, void const* address);

}  // namespace cosmati::emulator

#endif
