// Launch parameters of a sliding-window kernel for several phases of a strided data gradient. Blocks of the
// phases are interleaved, so that concurrent blocks read the same part of the image and write adjacent parts
// of the result, which stay in the caches.
#pragma once
#include "cosmati/core/divisor.h"

namespace cosmati {

inline constexpr int most_places_in_turn = 64;

// Block b < count * turns of the grid's x is block b / count of phase b mod count; the remaining blocks of
// the phases follow, phase by phase. A launch passes only the used elements of place[].
template <class Params, int most>
struct PlacesInTurn {
  struct Place {
    Params params;
    int rest = 0;  // the first block after the turns that belongs to this phase (or to a later one)
  };
  Divisor count;
  int turns = 0;
  Place place[most];
};

struct PlaceBlock {
  int place, block;
};

template <class Places>
COSMATI_CONSTEXPR PlaceBlock place_and_block(Places const& places, int block) {
  int const turn = places.count.quotient(block);
  if (turn < places.turns) return {block - turn * places.count.divisor, turn};
  int place = 0;
  while (place + 1 < places.count.divisor && places.place[place + 1].rest <= block) ++place;
  return {place, places.turns + block - places.place[place].rest};
}

// `blocks`: the blocks of each of `count` phases. Returns the blocks of the grid's x; at most 2^31 - 1.
template <class Places>
COSMATI_CONSTEXPR Index take_turns(Places& places, Index const* blocks, int count) {
  Index turns = blocks[0];
  for (int i = 1; i < count; ++i) turns = blocks[i] < turns ? blocks[i] : turns;
  places.count = Divisor(count);
  places.turns = static_cast<int>(turns);
  Index all = turns * count;
  for (int i = 0; i < count; ++i) {
    places.place[i].rest = static_cast<int>(all);
    all += blocks[i] - turns;
  }
  return all;
}

}  // namespace cosmati
