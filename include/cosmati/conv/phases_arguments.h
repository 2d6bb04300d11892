// Launch parameters of a kernel that computes the products of all phases of a strided data gradient.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

inline constexpr int max_phases_of_launch = 16;

// phase[i] is computed by blocks first_block[i] to first_block[i + 1] - 1 of the grid's x. A launch passes
// only the used elements of phase[].
template <class Params, int max_phases>
struct PhasesParameters {
  int count = 0, blocks = 0;  // blocks: of all phases
  int first_block[max_phases_of_launch] = {};
  Params phase[max_phases];
};

template <class Phases>
COSMATI_CONSTEXPR int phase_of_block(Phases const& phases, int block) {
  int phase = 0;
  while (phase + 1 < phases.count && phases.first_block[phase + 1] <= block) ++phase;
  return phase;
}

}  // namespace cosmati
