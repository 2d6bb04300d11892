// Steps of k, and how they are cut: equal parts of a tile, equal ranges of many tiles that lie end to end.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// Steps of k that a block multiplies: [first, last) of block_k each.
struct StepRange {
  int first, last;
};

// Part `part` of `parts` of the steps, as equal as whole steps allow.
COSMATI_CONSTEXPR StepRange part_of_steps(int steps, int part, int parts) {
  int const each = steps / parts, longer = steps % parts;
  int const first = part * each + (part < longer ? part : longer);
  return {first, first + each + (part < longer ? 1 : 0)};
}

// The part of part_of_steps() that `step` falls to.
COSMATI_CONSTEXPR int part_with_step(int steps, int parts, int step) {
  int const each = steps / parts, longer = steps % parts;
  int const beyond = step - longer * (each + 1);
  return beyond < 0 ? step / (each + 1) : longer + beyond / each;
}

// Of a range of steps of tiles that lie end to end: the last tile that it reaches, and what of this tile's
// `steps` it holds.
struct PieceOfTile {
  int tile;
  StepRange steps;
};
COSMATI_CONSTEXPR PieceOfTile last_piece(StepRange range, int steps) {
  int const tile = (range.last - 1) / steps, begin = tile * steps;
  return {tile, {range.first > begin ? range.first - begin : 0, range.last - begin}};
}

// How many of `tiles` are streamed where `places` blocks run at once: those of a last wave that is not full,
// and, so that nobody waits for sums that were not long published, those of a whole wave before it.
COSMATI_CONSTEXPR Index tiles_to_stream(Index tiles, Index places) {
  Index const rest = tiles % places;
  return rest == 0 ? 0 : tiles < places ? tiles : rest + places;
}

COSMATI_CONSTEXPR Index ceiling_divide(Index value, Index by) { return (value + by - 1) / by; }

}  // namespace cosmati
