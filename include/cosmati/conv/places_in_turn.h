// Launch parameters of a sliding-window kernel for several phases of a strided data gradient. Blocks of the
// phases are interleaved, so that concurrent blocks read the same part of the image and write adjacent parts
// of the result, which stay in the caches.
#pragma once
#include "cosmati/core/divisor.h"

namespace cosmati {

inline constexpr int most_places_in_turn = 64;

// Block b of the grid's x, b < count * turns, is block b / count of place b mod count; behind them come what
// blocks the places have left, place by place. A launch hands over as much of place[] as there is.
template <class Params, int most>
struct PlacesInTurn {
  struct Place {
    Params params;
    int rest = 0;  // the first block of the grid behind all turns that is this place's, or a later one's
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

// `blocks`: of each of `count` places. Returns the blocks of the grid's x; at most 2^31 - 1.
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
