// Launch parameters of a kernel that computes the products of all phases of a strided data gradient.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

inline constexpr int most_places_of_launch = 16;

// place[i] is computed by blocks first_block[i] to first_block[i + 1] - 1 of the grid's x. A launch passes
// only the used elements of place[].
template <class Params, int most>
struct PlacesParameters {
  int count = 0, blocks = 0;  // blocks: of all phases
  int first_block[most_places_of_launch] = {};
  Params place[most];
};

template <class Places>
COSMATI_CONSTEXPR int place_of_block(Places const& places, int block) {
  int place = 0;
  while (place + 1 < places.count && places.first_block[place + 1] <= block) ++place;
  return place;
}

}  // namespace cosmati
