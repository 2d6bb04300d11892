// Launch parameters of the kernel that writes an unrolled matrix.
#pragma once
#include "cosmati/conv/arguments.h"

namespace cosmati {

// Element (outer, depth) of group g is written to to[g * matrix_pitch + line * pitch + place], with (line,
// place) = (outer, depth) if lines run along the depth and (depth, outer) otherwise, so that elements that
// are contiguous in the source remain contiguous. A pitch is a multiple of the width.
struct UnrollParameters {
  WindowArguments from;
  void* to = nullptr;
  int outer = 0, depth = 0;
  Index pitch = 0, matrix_pitch = 0;
  Index first_batch = 0;
  int log2_lanes = 5;  // 2^log2_lanes threads of a block process a line, the others further lines
  Divisor blocks_of_line;
};

inline constexpr int unroll_threads = 128, unroll_lines_of_thread = 8;

}  // namespace cosmati
