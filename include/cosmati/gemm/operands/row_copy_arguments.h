// The blocks of the kernel that copies rows.
#pragma once
#include "cosmati/gemm/repack_arguments.h"

namespace cosmati {

struct RowCopyBlock {
  static constexpr int threads = 256, units_of_thread = 4, units = threads * units_of_thread;
  // The blocks for a matrix; `pitch`: of the destination, in elements.
  COSMATI_CONSTEXPR static Index blocks(Index rows, Index pitch, int element_bytes) {
    return (rows * (pitch * element_bytes / 16) + units - 1) / units;
  }
};

}  // namespace cosmati
