// The ring of stages between those who bring operands and those who multiply them.
#pragma once
#include "cosmati/arch/config.h"

namespace cosmati {

// A place in the ring, and how often it went round.
template <int stages>
struct RingPlace {
  int stage = 0, parity = 0;
  COSMATI_DEVICE void advance() {
    stage = stage + 1 < stages ? stage + 1 : 0;
    if (stage == 0) parity ^= 1;
  }
  COSMATI_DEVICE void advance(int steps) {
    int const next = stage + steps;
    parity ^= next / stages % 2;
    stage = next % stages;
  }
};

}  // namespace cosmati
