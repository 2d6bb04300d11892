// Steps of k and their division: equal parts of one tile, or equal ranges over concatenated tiles.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// Steps of k that a block multiplies: [first, last), each of block_k.
struct StepRange {
  int first, last;
};

// Returns part `part` of `parts` nearly equal parts of the steps.
COSMATI_CONSTEXPR StepRange part_of_steps(int steps, int part, int parts) {
  int const each = steps / parts, longer = steps % parts;
  int const first = part * each + (part < longer ? part : longer);
  return {first, first + each + (part < longer ? 1 : 0)};
}

// Returns the part of part_of_steps() that contains `step`.
COSMATI_CONSTEXPR int part_with_step(int steps, int parts, int step) {
  int const each = steps / parts, longer = steps % parts;
  int const beyond = step - longer * (each + 1);
  return beyond < 0 ? step / (each + 1) : longer + beyond / each;
}

// The last tile in a range of steps of concatenated tiles, and which of this tile's `steps` the range
// contains.
struct PieceOfTile {
  int tile;
  StepRange steps;
};
COSMATI_CONSTEXPR PieceOfTile last_piece(StepRange range, int steps) {
  int const tile = (range.last - 1) / steps, begin = tile * steps;
  return {tile, {range.first > begin ? range.first - begin : 0, range.last - begin}};
}

// Returns how many of `tiles` are streamed with `resident` blocks resident: those of an incomplete last wave,
// and of one full wave before it, so that partial sums are published long before they are needed.
COSMATI_CONSTEXPR Index tiles_to_stream(Index tiles, Index resident) {
  Index const rest = tiles % resident;
  return rest == 0 ? 0 : tiles < resident ? tiles : rest + resident;
}

COSMATI_CONSTEXPR Index ceiling_divide(Index value, Index by) { return (value + by - 1) / by; }

}  // namespace cosmati
