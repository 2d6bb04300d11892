// The transforms of Winograd's F(2x2, 3x3) on contiguous lines of channels. See
// cosmati/conv/winograd/winograd_matrices.h for the matrices.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati::cpu {

// Positions are row-major: (row, column) of a 4x4 tile, a 3x3 filter or 2x2 outputs. Each function transforms
// `count` channels; lines of floats may begin at any address.
inline constexpr int winograd_positions = 16, winograd_taps = 9, winograd_outputs = 4;

// to[i * pitch + c]: position i of B d B^T, where d is from[...][c].
void transform_tile(float const* const (&from)[winograd_positions], float* to, Index pitch, Index count);
// to[i][c]: position i of G g G^T, where g is from[...][c].
void transform_filter(float const* const (&from)[winograd_taps], float* const (&to)[winograd_positions],
                      Index count);
// to[i][c]: output i of A m A^T, where m is from[...][c].
void transform_sums(float const* const (&from)[winograd_positions], float* const (&to)[winograd_outputs],
                    Index count);

}  // namespace cosmati::cpu
