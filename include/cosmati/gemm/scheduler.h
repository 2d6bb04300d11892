// Which block computes which tile: the grid is (tiles, parts of k, batch).
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/arguments.h"
#include "cosmati/gemm/double_buffered.h"

namespace cosmati {

struct TileIndex {
  int m, n;
};

// Tile `index` of tiles_m by tiles_n in the order that the raster says: bands of raster_width tiles, and
// within a band along the raster's direction.
COSMATI_CONSTEXPR TileIndex raster_tile(Raster raster, int raster_width, int tiles_m, int tiles_n,
                                        int index) {
  int const length = raster == Raster::along_m ? tiles_m : tiles_n;
  int const across = raster == Raster::along_m ? tiles_n : tiles_m;
  int const width = raster_width < across ? raster_width : across;
  int const band = index / (width * length);
  int const rest = index - band * width * length;
  int const left = across - band * width;
  int const here = left < width ? left : width;
  int const along = rest / here, aside = band * width + rest % here;
  return raster == Raster::along_m ? TileIndex{along, aside} : TileIndex{aside, along};
}

// Part `part` of `parts` of the steps, as equal as whole steps allow.
COSMATI_CONSTEXPR StepRange part_of_steps(int steps, int part, int parts) {
  int const each = steps / parts, longer = steps % parts;
  int const first = part * each + (part < longer ? part : longer);
  return {first, first + each + (part < longer ? 1 : 0)};
}

COSMATI_CONSTEXPR Index ceiling_divide(Index value, Index by) { return (value + by - 1) / by; }

}  // namespace cosmati
