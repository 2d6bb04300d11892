// The ring of stages between producers and consumers.
#pragma once
#include "cosmati/arch/config.h"

namespace cosmati {

// A position in the ring, and the parity of the number of completed rounds.
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
