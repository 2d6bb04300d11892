// The ring of stages between producers and consumers, and tiles that stay in it.
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

// Tells a producer whether all stages hold a tile of B already. If k is a single step, they do after one
// round of tiles with the same B.
template <int stages>
class KeptTile {
 public:
  // Called once per tile: true if the stage that is filled next has its B; otherwise it is loaded.
  COSMATI_DEVICE bool holds(void const* maps, int n, Index batch, bool is_single_step) {
    bool const same = is_single_step && maps == maps_ && n == n_ && batch == batch_;
    maps_ = is_single_step ? maps : nullptr;
    n_ = n, batch_ = batch;
    if (same && filled_ == stages) return true;
    filled_ = same ? filled_ + 1 : 1;
    return false;
  }

 private:
  void const* maps_ = nullptr;
  Index batch_ = 0;
  int n_ = 0, filled_ = 0;
};

}  // namespace cosmati
