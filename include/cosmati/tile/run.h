// Runs of neighboring elements: what sources offer and loaders move.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// The index along which an operand's runs of neighbors lie.
enum class Along : unsigned char { outer, depth };

// Neighboring elements: the first `valid` of them exist, the others count as zero.
template <class Element>
struct Run {
  Element const* address;
  int valid;
};

}  // namespace cosmati
