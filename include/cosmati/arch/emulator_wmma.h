// What WMMA in arch/ calls where there is no GPU; continues arch/emulator.h.
#pragma once

#if !defined(__CUDACC__)

#include "cosmati/arch/emulator.h"

namespace cosmati::emulator {

// A matrix in shared memory that a warp loads into a fragment, or stores from one: `lines` of `line_bytes`,
// each `stride_bytes` behind the one before.
struct WmmaMatrix {
  char const* name;  // of the instruction
  void const* address;
  int lines, line_bytes, stride_bytes;
  int alignment;  // of the address, in bytes
};

// Of the running lane: refused are an address that is not aligned or not in shared memory, a stride that is
// no multiple of 16 bytes, lines that overlap, or that leave shared memory.
void check_wmma_matrix(WmmaMatrix const& matrix);

// In the rendezvous of the warp: all lanes must have brought one address.
void check_wmma_lane(WmmaMatrix const& matrix, int lane, void const* address);

}  // namespace cosmati::emulator

#endif
