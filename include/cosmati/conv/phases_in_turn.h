// Launch parameters of a sliding-window kernel for several phases of a strided data gradient. Blocks of the
// phases are interleaved, so that concurrent blocks read the same part of the image and write adjacent parts
// of the result, which stay in the caches.
#pragma once
#include "cosmati/core/divisor.h"

namespace cosmati {

inline constexpr int max_phases_in_turn = 64;

// Block b < count * turns of the grid's x is block b / count of phase b mod count; the remaining blocks of
// the phases follow, phase by phase. A launch passes only the used elements of phase[].
template <class Params, int max_phases>
struct PhasesInTurn {
  struct Phase {
    Params params;
    int rest = 0;  // the first of the remaining blocks that belongs to this phase (or to a later one)
  };
  Divisor count;
  int turns = 0;
  Phase phase[max_phases];
};

struct PhaseBlock {
  int phase, block;
};

template <class Phases>
COSMATI_CONSTEXPR PhaseBlock phase_and_block(Phases const& phases, int block) {
  int const turn = phases.count.quotient(block);
  if (turn < phases.turns) return {block - turn * phases.count.divisor, turn};
  int phase = 0;
  while (phase + 1 < phases.count.divisor && phases.phase[phase + 1].rest <= block) ++phase;
  return {phase, phases.turns + block - phases.phase[phase].rest};
}

// `blocks`: the number of blocks of each of `count` phases. Returns the grid's x; at most 2^31 - 1.
template <class Phases>
COSMATI_CONSTEXPR Index take_turns(Phases& phases, Index const* blocks, int count) {
  Index turns = blocks[0];
  for (int i = 1; i < count; ++i) turns = blocks[i] < turns ? blocks[i] : turns;
  phases.count = Divisor(count);
  phases.turns = static_cast<int>(turns);
  Index all = turns * count;
  for (int i = 0; i < count; ++i) {
    phases.phase[i].rest = static_cast<int>(all);
    all += blocks[i] - turns;
  }
  return all;
}

}  // namespace cosmati
