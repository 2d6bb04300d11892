// Conversion of f32 to 16-bit types, vectorized.
#pragma once
#include "cosmati/core/number.h"

namespace cosmati::dcgan {

// to[i] = the bits of from[i] as f16 or bf16, rounded to nearest, ties to even, like store(), except that the
// bits of NaN may differ.
void narrow(DataType type, float const* from, Index count, unsigned short* to);

}  // namespace cosmati::dcgan
