// Maps blocks to tiles; the grid is (tiles, parts of k, batch).
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/policy.h"
#include "cosmati/gemm/steps.h"

namespace cosmati {

struct TileIndex {
  int m, n;
};

// Returns the position of tile `index` in raster order among tiles_m by tiles_n tiles: bands of raster_width
// tiles, and within a band along the raster's direction.
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

}  // namespace cosmati
