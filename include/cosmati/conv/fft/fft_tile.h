// A block's part of a chunk of planes, and its transposition across lanes.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/fft/fft_arguments.h"

namespace cosmati {

struct FftPlane {
  int group, outer, depth;
};
COSMATI_DEVICE FftPlane fft_plane(FftChunk const& chunk, int plane) {
  int const number = chunk.first + plane, upper = chunk.depths.quotient(number),
            group = chunk.outers.quotient(upper);
  return {group, upper - group * chunk.outers.divisor, number - upper * chunk.depths.divisor};
}

// The first plane and position of the block.
struct FftTile {
  int plane, position;
};
template <int positions>
COSMATI_DEVICE FftTile fft_tile(FftChunk const& chunk) {
  int const planes = chunk.tiles.quotient(arch::block_x());
  return {planes * fft_side, (arch::block_x() - planes * chunk.tiles.divisor) * positions};
}

// A tile of which a warp writes lines and reads columns; the odd pitch avoids bank conflicts.
template <class Value>
struct FftTransposed {
  Value value[fft_side][fft_side + 1];
};
// The same, with the starts of the tile's planes, computed once.
template <class Value, class Start>
struct FftShared {
  Start start[fft_side];
  Value value[fft_side][fft_side + 1];
};

inline constexpr int fft_warps = fft_threads / 32, fft_lines = fft_side / fft_warps;  // lines per thread
static_assert(fft_side == 32);

// Calls use(line, lane) for each element of a tile; a warp processes one line at a time.
template <class Use>
COSMATI_DEVICE void for_each_of_tile(Use const& use) {
  COSMATI_UNROLL
  for (int i = 0; i < fft_lines; ++i) use(arch::thread() / 32 + i * fft_warps, arch::thread() % 32);
}

// Transposes a tile: value[i] belongs to (line, lane) before and to (lane, line) after the call.
template <class Shared, class Value>
COSMATI_DEVICE void fft_transpose(Shared& shared, Value (&value)[fft_lines]) {
  int const warp = arch::thread() / 32, lane = arch::thread() % 32;
  COSMATI_UNROLL
  for (int i = 0; i < fft_lines; ++i) shared.value[warp + i * fft_warps][lane] = value[i];
  arch::block_barrier();
  COSMATI_UNROLL
  for (int i = 0; i < fft_lines; ++i) value[i] = shared.value[lane][warp + i * fft_warps];
  arch::block_barrier();
}

}  // namespace cosmati
