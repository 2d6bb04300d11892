// The transforms of Winograd's F(2x2, 3x3) on lines of channels. The matrices B, G and A are those of
// cosmati/conv/winograd/winograd_matrices.h.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati::cpu {

// Positions are row-major: (row, column) of a 4x4 tile, of a 3x3 filter, of 2x2 outputs.
inline constexpr int winograd_positions = 16, winograd_taps = 9, winograd_outputs = 4;

// For each c < count, to[i][c] is position i of the transform of the matrix from[...][c]. Lines are
// contiguous and begin at any address; lines of `to` may be the same if they are not used.
using TileLines = float const* const (&)[winograd_positions];
using TransformedLines = float* const (&)[winograd_positions];
void transform_tile(TileLines from, TransformedLines to, Index count);  // B d B^T
void transform_filter(float const* const (&from)[winograd_taps], TransformedLines to,
                      Index count);                                                      // G g G^T
void transform_sums(TileLines from, float* const (&to)[winograd_outputs], Index count);  // A m A^T

}  // namespace cosmati::cpu
