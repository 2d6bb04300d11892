// Runs of contiguous elements, which sources provide and loaders move.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// The index along which an operand is contiguous: MN-major (outer) or K-major (depth).
enum class Along : unsigned char { mn, k };

// Contiguous elements: the first `valid` of them exist, the others count as zero.
template <class Element>
struct Run {
  Element const* address;
  int valid;
};

}  // namespace cosmati
